import Sessions
import Synchronization
import WorkQueues

/// The counts of a worker since its start, for status commands and metrics. For any thread.
package final class WorkerMeter: Sendable {
  package struct Counts: Sendable {
    /// The counts that a restart continues, and that status commands show.
    package var counters: WorkerCounters
    package fileprivate(set) var bytes = 0
    package fileprivate(set) var unchanged = 0
    /// Of batches whose captures have an interval.
    package fileprivate(set) var captures = 0
    package fileprivate(set) var missing = 0
    package fileprivate(set) var late = 0
    package var takeovers = 0
    package var failures = 0
    /// Batches by duration; one more bucket than ``WorkerMeter/boundsS``.
    package fileprivate(set) var durations = [Int](repeating: 0, count: boundsS.count + 1)
    package fileprivate(set) var totalMs = 0
  }

  /// The name of the durations.
  package static let duration = "encoder_worker_batch_duration_seconds"
  /// Upper bounds of the buckets, in seconds.
  package static let boundsS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]

  private let counts: Mutex<Counts>
  private let metrics: (any WorkerMetrics)?

  /// - Parameter metrics: gets what this meter counts from now on.
  init(continuing counters: WorkerCounters, _ metrics: (any WorkerMetrics)?) {
    counts = Mutex(Counts(counters: counters))
    self.metrics = metrics
    if let metrics { for counter in WorkerCounter.all { counter.add(to: metrics) } }
  }

  package var now: Counts { counts.withLock { $0 } }

  func add(_ change: (inout Counts) -> Void) {
    guard let metrics else { return counts.withLock { change(&$0) } }
    let (before, after) = counts.withLock { counts in
      let before = counts
      change(&counts)
      return (before, counts)
    }
    for counter in WorkerCounter.all {
      counter.add(to: metrics) { after[keyPath: $0] - before[keyPath: $0] }
    }
  }

  /// Adds a batch.
  ///
  /// - Parameter receipts: of its sessions.
  func add(_ receipts: [Receipt], tookMs: Int) {
    add { counts in
      let published = receipts.filter { $0.refusal == nil }
      if published.isEmpty {
        counts.counters.refusedBatches += 1
      } else if published.allSatisfy(\.duplicate) {
        counts.counters.duplicates += 1
      } else {
        counts.counters.published += 1
      }
      for receipt in receipts {
        if !receipt.duplicate {
          counts.counters.segments += receipt.segments
          counts.counters.frames += receipt.frames
          counts.bytes += receipt.bytes
          if let health = receipt.health {
            counts.captures += health.captures
            counts.missing += health.missing
            counts.late += health.late
          }
        }
        counts.counters.refused += receipt.refused.count
        counts.unchanged += receipt.unchanged
      }
      let index = Self.boundsS.firstIndex { Double(tookMs) <= $0 * 1_000 } ?? Self.boundsS.count
      counts.durations[index] += 1
      counts.totalMs += tookMs
    }
    metrics?.record(Self.duration, .milliseconds(tookMs))
  }
}
