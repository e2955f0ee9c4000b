import ISOMedia

/// The cadence of repeated samples in a segment, which keeps players in time. Pure.
///
/// Chromium estimates a picture's duration from the pictures before it: a file of one sample ends at once, a short last
/// sample behind long ones is never shown, and after an irregular sample a picture may come half a second early. Samples
/// of about equal length avoid that, and so do samples of at most a quarter of a second. A hold is divided evenly,
/// because a sample that begins just before a capture makes Chromium show the wrong picture.
///
/// The numbers were found by playing single segments in Chromium 156 (`Benchmarks/BROWSERS.md`): with them each segment
/// plays in real time, and every picture is seen. `make browsers` repeats the experiment.
package struct SampleCadence: Equatable {
  /// Maximum duration of a sample, in milliseconds.
  package let sampleMs: Int64

  /// Codes every picture once.
  package static let asCaptured = SampleCadence(sampleMs: .max)
  /// A cadence for any holds: samples of a quarter of a second play in time, however irregular they are.
  package static let dense = SampleCadence(sampleMs: 250)
  /// A cadence for holds that give samples of about equal length; it takes half the samples of ``dense``.
  static let even = SampleCadence(sampleMs: 500)

  /// Cadences of segments that are longer than by default. A picture that stays for minutes needs few samples, if they are even.
  static let sparse = [10_000, 1_000].map { SampleCadence(sampleMs: $0) }

  /// Longest hold of regular captures, in milliseconds: one a second, and a tenth of jitter.
  package static let longestRegularMs: Int64 = 1_100
  /// The shortest of regular holds, as a share of the longest.
  private static let regularEvenness = 0.8
  /// The shortest sample of ``even``, as a share of the longest.
  private static let sampleEvenness = 0.75
  /// Fewest holds from which Chromium learns a quick pace.
  private static let quickHolds = 7
  /// Longest hold of quick captures, in milliseconds: some three a second, despite jitter.
  private static let longestQuickMs: Int64 = 400
  /// The last of quick holds is at least the longest divided by this. Chromium does not show a shorter one.
  private static let quickLastDivisor: Int64 = 2

  init(sampleMs: Int64) { self.sampleMs = sampleMs }

  /// The cadence for a segment with these holds, in milliseconds.
  ///
  /// - Parameter segmentMs: the length of a full segment.
  package init(for holds: [Int64], segmentMs: Int64 = Timeline.defaultSegmentMs) {
    if Self.areRegular(holds) || Self.areQuick(holds) {
      self = .asCaptured
    } else if segmentMs > Timeline.defaultSegmentMs,
      let sparse = Self.sparse.first(where: { $0.suits(holds) })
    {
      self = sparse
    } else {
      self = Self.even.isEven(holds, Self.sampleEvenness) ? .even : .dense
    }
  }

  /// Whether the holds are those of regular captures, at least about one a second.
  private static func areRegular(_ holds: [Int64]) -> Bool {
    holds.count > 1 && (holds.max() ?? 0) <= longestRegularMs && asCaptured.isEven(holds, regularEvenness)
  }

  /// Whether the holds are those of some three captures a second or more, which play in time despite jitter.
  private static func areQuick(_ holds: [Int64]) -> Bool {
    guard holds.count >= quickHolds, let longest = holds.max(), let last = holds.last else { return false }
    return longest <= longestQuickMs && quickLastDivisor * last >= longest
  }

  private func sampleCount(of holdMs: Int64) -> Int64 { 1 + (holdMs - 1) / sampleMs }

  /// Returns the number of samples of a segment.
  func sampleCount(of holds: [Int64]) -> Int64 { holds.reduce(0) { $0 + sampleCount(of: $1) } }

  /// Whether it gives a segment several samples of about equal length.
  private func suits(_ holds: [Int64]) -> Bool { sampleCount(of: holds) > 1 && isEven(holds, Self.sampleEvenness) }

  /// Returns the starts of a hold's samples, evenly spread, in ticks from its own start.
  func sampleStarts(of holdMs: Int64) -> [Int64] {
    let (length, count) = (MediaTime.ticks(ms: holdMs), sampleCount(of: holdMs))
    return (0..<count).map { length * $0 / count }
  }

  /// Whether the shortest sample of these holds is at least this share of the longest.
  private func isEven(_ holds: [Int64], _ share: Double) -> Bool {
    let lengths = holds.map { Double($0) / Double(sampleCount(of: $0)) }
    return (lengths.min() ?? 0) >= share * (lengths.max() ?? 0)
  }
}
