// Animated pictures that `serve` makes for a request. Anybody may send one, so its cost is known before any picture is decoded.

import Encoding
import Films
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
