import FrameBatches

/// A track's pictures in the order they are shown, decoded as they are asked for.
package final class VideoPictures {
  private let reader: MP4Reader
  private let track: Int
  private let decoder: VideoDecoder
  private var ready: ArraySlice<VideoDecoder.Decoded> = []
  private var current: VideoDecoder.Decoded?
  private var isAtEnd = false
  private let step: () -> Void

  /// - Parameters:
  ///   - reader: reads on from where it stands.
  ///   - step: called for each sample that is read.
  init(_ reader: MP4Reader, track: Int, limits: Limits, step: @escaping () -> Void = {}) throws {
    self.reader = reader
    self.track = track
    decoder = try VideoDecoder(reader.parameters(of: track), limits: limits)
    self.step = step
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
