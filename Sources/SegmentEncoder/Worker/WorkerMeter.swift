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
    /// Batches by duration.
    package fileprivate(set) var durations = DurationHistogram(DurationHistogram.ofWork)
    /// Batches by the duration of each stage.
    package fileprivate(set) var stages = Dictionary(
      WorkStage.allCases.map { ($0, DurationHistogram(DurationHistogram.ofWork)) }
    ) { $1 }
    /// Batches by the time from their arrival to their publication.
    package fileprivate(set) var arrivals = DurationHistogram(DurationHistogram.ofLateness)
    /// Sessions of batches by the time from their last capture to their publication.
    package fileprivate(set) var lateness = DurationHistogram(DurationHistogram.ofLateness)
  }

  /// The names of the durations.
  package static let duration = "encoder_worker_batch_duration_seconds"
  package static let stageDuration = "encoder_worker_stage_duration_seconds"
  package static let arrivalToPublished = "encoder_worker_arrival_to_published_seconds"
  package static let captureToPublished = "encoder_worker_capture_to_published_seconds"
  /// Captures that are older when they are published come from an archive, and not from a recorder that runs.
  private static let longestLatenessMs: Int64 = 86_400_000

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
  /// - Parameters:
  ///   - receipts: of its sessions.
  ///   - arrivedMs: when it came, in unix milliseconds; nil if the queue does not tell.
  ///   - publishedMs: when it was published, in unix milliseconds.
  func add(_ receipts: [Receipt], tookMs: Int, _ stages: StageTimes, arrivedMs: Int64?, publishedMs: Int64) {
    let news = receipts.filter { $0.refusal == nil && !$0.duplicate }
    let arrivalMs = news.isEmpty ? nil : arrivedMs.map { max(0, publishedMs - $0) }
    let captureMs = news.compactMap(\.lastCaptureMs).map { max(0, publishedMs - $0) }.filter {
      $0 < Self.longestLatenessMs
    }
    add { counts in
      for (stage, ns) in stages.all { counts.stages[stage]?.add(seconds: Double(ns) / 1e9) }
      if let arrivalMs { counts.arrivals.add(seconds: Double(arrivalMs) / 1_000) }
      for lateMs in captureMs { counts.lateness.add(seconds: Double(lateMs) / 1_000) }
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
      counts.durations.add(seconds: Double(tookMs) / 1_000)
    }
    metrics?.record(Self.duration, .milliseconds(tookMs))
    if let arrivalMs { metrics?.record(Self.arrivalToPublished, .milliseconds(arrivalMs)) }
    for lateMs in captureMs { metrics?.record(Self.captureToPublished, .milliseconds(lateMs)) }
  }
}
