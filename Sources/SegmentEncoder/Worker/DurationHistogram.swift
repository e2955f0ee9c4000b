/// Durations by their length, for a metric.
package struct DurationHistogram: Sendable {
  /// The bounds of the work on a batch.
  static let ofWork = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]
  /// The bounds of the time until a batch is published.
  static let ofLateness: [Double] = [1, 2.5, 5, 10, 15, 30, 60, 120, 300, 900, 3_600]

  /// Upper bounds of the buckets, in seconds.
  package let boundsS: [Double]
  /// One more than the bounds.
  package private(set) var counts: [Int]
  package private(set) var sumS = 0.0

  init(_ boundsS: [Double]) {
    self.boundsS = boundsS
    counts = [Int](repeating: 0, count: boundsS.count + 1)
  }

  mutating func add(seconds: Double) {
    counts[boundsS.firstIndex { seconds <= $0 } ?? boundsS.count] += 1
    sumS += seconds
  }
}
