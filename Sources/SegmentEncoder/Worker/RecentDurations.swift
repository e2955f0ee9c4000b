/// The durations of the last batches, to notice a batch that took much longer.
struct RecentDurations {
  /// The number of batches that are remembered.
  static let kept = 100
  /// The number of batches that have to be known.
  static let needed = 20
  /// A slow batch took at least this many times the median, and at least so many milliseconds.
  static let (factor, minimumMs) = (10, 5_000)

  private var lastMs: [Int] = []
  private var next = 0

  /// Adds a batch.
  ///
  /// - Returns: the median of those before if it was slow; else nil.
  mutating func add(_ tookMs: Int) -> Int? {
    defer {
      if lastMs.count < Self.kept { lastMs.append(tookMs) } else { lastMs[next] = tookMs }
      next = (next + 1) % Self.kept
    }
    guard tookMs >= Self.minimumMs, lastMs.count >= Self.needed else { return nil }
    let medianMs = lastMs.sorted()[lastMs.count / 2]
    return tookMs / Self.factor >= medianMs ? medianMs : nil
  }
}
