// Animated pictures that `serve` makes for a request. Anybody may send one, so its cost is known before any picture is decoded.

import Encoding
import FrameBatches

extension SessionPlayback {
  /// Returns the size that an animated picture of the session, or of a part of it, has about, in bytes.
  ///
  /// - Throws: ``BadClip`` if it shows nothing; ``AnimationRefusal`` if it takes too long for a request; ``BadSession`` if two
  ///   segments overlap.
  package func animationBytes(of clip: Clip, as format: AnimationFormat, maxSide: Int) throws -> Int {
    let known = Dictionary(segments.map { ($0.startMs, $0) }) { first, _ in first }
    let part = try ClippedSession(
      clip, of: session, first: segments[0].startMs, last: segments[segments.count - 1],
      starts: segments.map(\.startMs)
    ) { start in
      guard let segment = known[start] else { throw BadSession(session.description, "segment \(start) is missing") }
      return segment
    }
    let form = FilmForm.animation(format, maxSide: maxSide)
    let plan = AnimationPlan(try StitchPlan(part, of: clip, gaps: .hold, as: form, in: session))
    return try plan.requestedBytes(as: format, maxSide: maxSide)
  }
}

extension AnimationPlan {
  /// The most pixels of all pictures of a request: 15 000 pictures of 480×270, or 470 of 2048×2048.
  static let maximumRequestedPixels = 2_000_000_000
  /// The expected size of a file: a picture stores what changes, and most pixels of a screen stay. It may be larger. The disk's own
  /// error decides.
  private static let (leastBytes, pixelsAByte) = (64 << 10, 16)

  /// - Throws: ``AnimationRefusal`` for more pictures than an animated picture has.
  func requireFewPictures(as format: AnimationFormat) throws(AnimationRefusal) {
    guard count <= AnimationWriter.maximumPictures else {
      throw AnimationRefusal(format: format, fault: .pictures(count))
    }
  }

  /// Returns the size that the animated picture of a request has about, in bytes.
  ///
  /// - Throws: ``AnimationRefusal`` if it takes too long.
  func requestedBytes(as format: AnimationFormat, maxSide: Int) throws(AnimationRefusal) -> Int {
    try requireFewPictures(as: format)
    let size = size(maxSide: maxSide)
    let pixels = count * size.width * size.height
    guard pixels <= Self.maximumRequestedPixels else {
      throw AnimationRefusal(format: format, fault: .pixels(pixels))
    }
    return max(Self.leastBytes, pixels / Self.pixelsAByte)
  }
}
