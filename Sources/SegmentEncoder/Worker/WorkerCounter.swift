/// A counter of a worker, for its `/metrics` and for ``WorkerMetrics``.
package struct WorkerCounter: Sendable {
  package typealias Count = KeyPath<WorkerMeter.Counts, Int> & Sendable

  package let name: String
  package let help: String
  /// One count for each value of the label `outcome`; a single one without an outcome if the counter has no label.
  package let values: [(outcome: String, count: Count)]

  package var hasOutcomes: Bool { values.count > 1 }

  private init(_ name: String, _ help: String, by values: [(outcome: String, count: Count)]) {
    self.name = "encoder_worker_\(name)_total"
    self.help = help
    self.values = values
  }

  private init(_ name: String, _ help: String, _ count: Count) { self.init(name, help, by: [("", count)]) }

  package static let all = [
    WorkerCounter(
      "batches", "Batches that this worker has finished, by outcome.",
      by: [
        ("published", \.counters.published), ("duplicate", \.counters.duplicates),
        ("quarantined", \.counters.quarantined), ("refused", \.counters.refusedBatches),
      ]),
    WorkerCounter("segments", "Segments that it has published.", \.counters.segments),
    WorkerCounter("frames", "Captured frames in them.", \.counters.frames),
    WorkerCounter("frames_unchanged", "Frames equal to the one before, which cost no encode.", \.unchanged),
    WorkerCounter("frames_refused", "Frames that could not be shown.", \.counters.refused),
    WorkerCounter("bytes", "Bytes of the segments that it has published.", \.bytes),
    WorkerCounter("captures", "Captures in published batches with an interval.", \.captures),
    WorkerCounter("captures_missing", "Captures that their recorders left out.", \.missing),
    WorkerCounter("captures_late", "Captures that were late by more than half an interval.", \.late),
    WorkerCounter("rescues", "Batches taken over from dead workers.", \.takeovers),
    WorkerCounter("failures", "Failures of the environment.", \.failures),
  ]

  /// Adds to the embedder's counters. Skips those that did not change.
  ///
  /// - Parameter change: the change of a count; nil at the start, when each counter begins with 0.
  func add(to metrics: any WorkerMetrics, _ change: ((Count) -> Int)? = nil) {
    for (outcome, count) in values {
      let amount = change.map { $0(count) }
      if amount != 0 { metrics.increment(name, hasOutcomes ? [("outcome", outcome)] : [], by: amount ?? 0) }
    }
  }
}
