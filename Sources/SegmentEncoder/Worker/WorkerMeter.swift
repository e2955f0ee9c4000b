import Sessions
import Synchronization

/// Counters of a worker for metrics, beside those in its ``SharedCounters``.
package final class WorkerMeter: Sendable {
  package struct Counts {
    package fileprivate(set) var bytes = 0
    package fileprivate(set) var unchanged = 0
    package fileprivate(set) var takeovers = 0
    package fileprivate(set) var failures = 0
    /// Batches by duration; one more bucket than ``WorkerMeter/boundsS``.
    package fileprivate(set) var durations = [Int](repeating: 0, count: boundsS.count + 1)
    package fileprivate(set) var totalMs = 0
  }

  /// Upper bounds of the buckets, in seconds.
  package static let boundsS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]

  private let counts = Mutex(Counts())

  package var now: Counts { counts.withLock { $0 } }

  func note(_ receipts: [Receipt], tookMs: Int) {
    counts.withLock { counts in
      for receipt in receipts {
        if !receipt.duplicate { counts.bytes += receipt.bytes }
        counts.unchanged += receipt.unchanged
      }
      let index = Self.boundsS.firstIndex { Double(tookMs) <= $0 * 1_000 } ?? Self.boundsS.count
      counts.durations[index] += 1
      counts.totalMs += tookMs
    }
  }

  func noteTakeover() { counts.withLock { $0.takeovers += 1 } }

  func noteFailure() { counts.withLock { $0.failures += 1 } }
}
