// The session so far: a view of its segments' manifests that can always be rebuilt from them. Pure.

import Encoding
import FrameBatches

package struct SessionManifest: Sendable, Equatable {
  package struct Segment: Sendable, Equatable {
    package let file: String
    package let startMs: Int64
    package let durationMs: Int64
    package let width: Int
    package let height: Int
    package let bytes: Int
    package let sha256: String
    /// How many frames it shows, continued ones included.
    package let frames: Int
  }

  package struct Gap: Sendable, Equatable {
    package let startMs: Int64
    package let endMs: Int64
  }

  package let session: SessionID
  package let startMs: Int64
  package let endMs: Int64
  package let durationMs: Int64
  /// Whether the segment that ends the session is there.
  package let complete: Bool
  package let segments: [Segment]
  package let gaps: [Gap]
  /// Captured frames; one that continues in the next segment counts once.
  package let frames: Int
  package let bytes: Int

  /// - Parameter segments: at least one, in the order of their starts.
  init?(session: SessionID, segments: [PublishedSegment]) {
    guard let first = segments.first, let last = segments.last else { return nil }
    self.session = session
    startMs = first.startMs
    endMs = last.endMs + last.gapAfterMs
    durationMs = endMs - startMs
    complete = last.isFinal
    self.segments = segments.map {
      Segment(
        file: $0.file, startMs: $0.startMs, durationMs: $0.durationMs, width: $0.width, height: $0.height,
        bytes: $0.bytes, sha256: $0.sha256, frames: $0.frames.count)
    }
    var gaps = zip(segments, segments.dropFirst()).compactMap { $0.gap(before: $1) }
    if last.gapAfterMs > 0 { gaps.append(Gap(startMs: last.endMs, endMs: endMs)) }
    self.gaps = gaps
    frames = segments.reduce(0) { $0 + $1.frames.count { $0.isCaptured } }
    bytes = segments.reduce(0) { $0 + $1.bytes }
  }
}

extension PublishedSegment {
  /// The unrecorded time up to the next segment. Within a batch any distance is one. Batches meet with some jitter, and
  /// less than half an interval from the end of the one, gap included, to the beginning of the other is a seam.
  package func gap(before next: PublishedSegment) -> SessionManifest.Gap? {
    let distance = next.startMs - endMs
    let isSeam = batchDigest != next.batchDigest && 2 * (distance - gapAfterMs) < intervalMs
    return distance > 0 && (gapAfterMs > 0 || !isSeam) ? SessionManifest.Gap(startMs: endMs, endMs: next.startMs) : nil
  }
}
