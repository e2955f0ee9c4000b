@testable import Encoding
@testable import FrameBatches

extension PublishedSegment {
  /// Makes a segment with defaults for all fields that the test does not set.
  package static func made(
    _ startMs: Int64, _ endMs: Int64, batch: String = "a", part: Int = 1, parts: Int = 1, gapAfterMs: Int64 = 0,
    final: Bool = false, captured: [Bool] = [true], bytes: Int = 10, intervalMs: Int64 = 1_000,
    capturesChanges: Bool = false
  ) -> PublishedSegment {
    PublishedSegment(
      batch: batch, batchDigest: batch, part: part, parts: parts, startMs: startMs,
      endMs: endMs, width: 2, height: 2, codedWidth: 2, codedHeight: 2, bytes: bytes, sha256: "", samples: 1,
      frames: captured.map {
        Frame(timeMs: startMs, holdMs: (endMs - startMs) / Int64(captured.count), isCaptured: $0)
      }, intervalMs: intervalMs, gapAfterMs: gapAfterMs, capturesChanges: capturesChanges, isFinal: final,
      encoder: .null)
  }

  /// Returns the segment with other frames.
  package func showing(_ frames: [Frame]) -> PublishedSegment {
    PublishedSegment(
      batch: batch, batchDigest: batchDigest, part: part, parts: parts, startMs: startMs, endMs: endMs, width: width,
      height: height, codedWidth: codedWidth, codedHeight: codedHeight, bytes: bytes, sha256: sha256, samples: samples,
      frames: frames, intervalMs: intervalMs, gapAfterMs: gapAfterMs, isFinal: isFinal, encoder: encoder)
  }
}
