import Encoding
import FrameBatches

/// Checks segments against each other. Pure.
package enum SessionOrder {
  /// Returns overlaps that are no seams, and gaps that do not end at the next segment's start.
  ///
  /// - Parameter segments: in the order of their starts.
  package static func overlaps(of segments: [PublishedSegment]) -> [Problem] {
    var problems: [Problem] = []
    for (one, next) in zip(segments, segments.dropFirst()) {
      let isSameBatch = one.batchDigest == next.batchDigest
      let overlaps = next.startMs < one.endMs && (isSameBatch || !one.isSeam(with: next))
      if overlaps { problems.append(Problem(file: next.file, what: "overlaps \(one.file)")) }
      if next.isNextPart(after: one) && one.endMs + one.gapAfterMs != next.startMs {
        problems.append(Problem(file: one.file, what: "its gap does not end where the next segment begins"))
      }
    }
    return problems
  }

  /// Returns batches with missing parts.
  ///
  /// - Parameters:
  ///   - isAll: whether the segments are all of the session; otherwise only parts between them can be missing.
  ///   - isCut: whether the session's first segments were removed: the first parts of a batch may be among them.
  package static func missingParts(
    of segments: [PublishedSegment], isAll: Bool = true, isCut: Bool = false
  ) -> [Problem] {
    var problems: [Problem] = []
    for (digest, parts) in Dictionary(grouping: segments, by: \.batchDigest) {
      let present = Set(parts.map(\.part))
      let first = isAll && !isCut ? 1 : present.min() ?? 1
      let last = isAll ? max(1, parts[0].parts) : present.max() ?? 1
      // List the first five.
      let missing = Array((first...last).lazy.filter { !present.contains($0) }.prefix(6))
      guard !missing.isEmpty || parts.contains(where: { $0.parts != parts[0].parts }) else { continue }
      let which = missing.prefix(5).map(String.init).joined(separator: ", ") + (missing.count > 5 ? " …" : "")
      problems.append(
        Problem(
          file: parts[0].file,
          what: "of batch \(parts[0].batch) (\(digest.prefix(12))), part \(which) of \(parts[0].parts) is missing"))
    }
    return problems
  }
}

extension PublishedSegment {
  /// Throws ``BadBatch`` if a new segment overlaps published time.
  func requireNoConflict(with published: [PublishedSegment]) throws {
    for old in published where min(old.endMs, endMs) > max(old.startMs, startMs) && !isSeam(with: old) {
      throw BadBatch(
        "publish", batch,
        "\(file) overlaps \(old.file): batch \(old.batch) with other content was published for that time",
        advice:
          "to add frames, send only the new ones; to replace the session, move its directory away, or name another session"
      )
    }
  }

  /// Whether it is the part of a batch behind another one. Then the changed blocks of its first picture count from that one.
  package func isNextPart(after other: PublishedSegment) -> Bool {
    batchDigest == other.batchDigest && part == other.part + 1
  }

  /// Whether two overlapping segments are the end of one batch and the beginning of the next, less than half an
  /// interval apart, so that cutting the earlier one's last picture short closes the seam. Where the end of the one is open, the next
  /// may begin anywhere in its last picture's hold.
  package func isSeam(with other: PublishedSegment) -> Bool {
    guard startMs != other.startMs else { return false }
    let (earlier, later) = startMs < other.startMs ? (self, other) : (other, self)
    return earlier.part == earlier.parts && earlier.leavesSeam(atMs: later.startMs)
      && (earlier.isEndOpen || later.part == 1 && later.endMs > earlier.endMs)
  }

  /// Whether a later picture may cut the last one short at an instant.
  func leavesSeam(atMs startMs: Int64) -> Bool {
    startMs > lastShownMs && (isEndOpen || 2 * (endMs - startMs) < intervalMs)
  }
}

extension [PublishedSegment] {
  /// Whether these, of one batch, are all segments of it.
  var isWhole: Bool { first.map { $0.parts == count } ?? false }
}
