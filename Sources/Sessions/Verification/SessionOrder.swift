import Encoding

/// Checks segments against each other. Pure.
enum SessionOrder {
  /// Returns overlaps that are no seams, and gaps that do not end at the next segment's start.
  ///
  /// - Parameter segments: in the order of their starts.
  static func overlaps(of segments: [PublishedSegment]) -> [Problem] {
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
  static func missingParts(
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
