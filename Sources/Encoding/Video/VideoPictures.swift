import CFFmpeg
import FileSystem
import FrameBatches

/// A track's pictures, decoded in this process when they are asked for.
final class VideoPictures: FilmPictures {
  private let reader: MP4Reader
  private let track: Int
  private let decoder: VideoDecoder
  private var ready: ArraySlice<FrameBuffer> = []
  private var current: FrameBuffer?
  private var isAtEnd = false
  private let converter = PictureConverter()
  private let step: () -> Void

  /// - Parameters:
  ///   - isCropped: whether pictures lack the columns and rows that players crop.
  ///   - step: called for each sample that is read.
  init(
    _ reader: MP4Reader, track: Int, limits: Limits, isCropped: Bool = true, step: @escaping () -> Void = {}
  ) throws {
    self.reader = reader
    self.track = track
    decoder = try unsafe VideoDecoder(reader.parameters(of: track), limits: limits, isCropped: isCropped)
    self.step = step
  }

  convenience init(
    _ file: any ByteSource, name: String, track: Int, keyDTS: Int64?, limits: Limits, step: @escaping () -> Void = {}
  ) throws {
    let reader = try MP4Reader(file)
    guard (0..<reader.trackCount).contains(track) else { throw BadSession(name, "no such track") }
    if let keyDTS { try reader.seek(toKeyFrameAt: keyDTS, of: track) }
    try self.init(reader, track: track, limits: limits, step: step)
  }

  func picture(at pts: Int64, as form: VideoPictureForm) throws -> Picture? {
    guard let decoded = try picture(at: pts) else { return nil }
    guard (1...decoded.width).contains(form.size.width), (1...decoded.height).contains(form.size.height) else {
      throw BadSession("", "a picture is smaller than expected")
    }
    if decoded.isHighDynamicRange {
      throw BadSession("", "high dynamic range (PQ or HLG)", advice: "make it SDR first")
    }
    decoded.crop(width: form.size.width, height: form.size.height)
    return try Picture(
      adopting: converter.planar420(ofVideo: decoded, quarterTurns: form.quarterTurns, maxSide: form.maxSide))
  }

  /// Returns the picture that is shown from `pts` on; nil if there is none. Calls are in the order of `pts`, which may repeat.
  func picture(at pts: Int64) throws -> FrameBuffer? {
    while current.map({ $0.pts < pts }) ?? true {
      guard let next = try next() else { return nil }
      current = next
    }
    return current?.pts == pts ? current : nil
  }

  private func next() throws -> FrameBuffer? {
    while ready.isEmpty, !isAtEnd {
      if let sample = try reader.next() {
        step()
        if sample.track == track { ready = try decoder.decode(sample)[...] }
      } else {
        ready = try decoder.decode(nil)[...]
        isAtEnd = true
      }
    }
    return ready.popFirst()
  }
}
