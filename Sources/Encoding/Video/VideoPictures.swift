import FileSystem
import FrameBatches

/// A track's pictures in the order they are shown, decoded as they are asked for.
final class VideoPictures: FilmPictures {
  private let reader: MP4Reader
  private let track: Int
  private let decoder: VideoDecoder
  private var ready: ArraySlice<VideoDecoder.Decoded> = []
  private var current: VideoDecoder.Decoded?
  private var isAtEnd = false
  private let converter = PictureConverter()
  private let step: () -> Void

  /// - Parameter step: called for each sample that is read.
  init(_ reader: MP4Reader, track: Int, limits: Limits, step: @escaping () -> Void = {}) throws {
    self.reader = reader
    self.track = track
    decoder = try VideoDecoder(reader.parameters(of: track), limits: limits)
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

  package func picture(at pts: Int64, as form: VideoPictureForm) throws -> Picture? {
    guard let decoded = try picture(at: pts) else { return nil }
    guard (1...decoded.width).contains(form.size.width), (1...decoded.height).contains(form.size.height) else {
      throw BadSession("", "a picture of another size than was to be expected")
    }
    if decoded.isHighDynamicRange {
      throw BadSession("", "high dynamic range (PQ or HLG)", advice: "make it SDR first")
    }
    decoded.crop(width: form.size.width, height: form.size.height)
    return try Picture(
      adopting: converter.planar420(ofVideo: decoded, quarterTurns: form.quarterTurns, maxSide: form.maxSide))
  }

  /// The picture shown from `pts` on; asked for in order, and more than once where it is wanted.
  ///
  /// - Returns: nil when there is none.
  package func picture(at pts: Int64) throws -> FrameBuffer? {
    while current.map({ $0.pts < pts }) ?? true {
      guard let next = try next() else { return nil }
      current = next
    }
    return current?.pts == pts ? current?.pixels : nil
  }

  private func next() throws -> VideoDecoder.Decoded? {
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
