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

  /// Returns the segment with health and labels, or without. The interval of a batch is one for all its segments.
  package func telling(_ random: inout Random) -> PublishedSegment {
    var segment = self
    let hash = Int64(batch.utf8.reduce(0) { $0 + Int($1) })
    if hash % 4 > 0 {
      var figures = HealthFigures()
      figures.missing = Int(random.int(0...2))
      if random.once(in: 3) { figures.late.add(random.int(1...5_000), .up) }
      if random.once(in: 3) { figures.pauses.add(random.int(5_000...90_000), .up) }
      segment.health = SegmentHealth(intervalMs: 100 * (hash % 4), figures)
    }
    let labels = ["step", "error", "mine"].filter { _ in random.once(in: 3) }.compactMap {
      Label(timeMs: startMs, kind: $0, text: $0, level: random.once(in: 2) ? .error : nil)
    }
    segment.labels = LabelCounts(labels)
    return segment
  }

  /// Returns the segment with other frames.
  package func showing(_ frames: [Frame]) -> PublishedSegment {
    PublishedSegment(
      batch: batch, batchDigest: batchDigest, part: part, parts: parts, startMs: startMs, endMs: endMs, width: width,
      height: height, codedWidth: codedWidth, codedHeight: codedHeight, bytes: bytes, sha256: sha256, samples: samples,
      frames: frames, intervalMs: intervalMs, gapAfterMs: gapAfterMs, isFinal: isFinal, encoder: encoder)
  }
}
