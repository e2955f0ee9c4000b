/// Gets the metrics of a worker, under the names that `encoder-worker run` has in its `/metrics`.
///
/// A worker calls it on several threads at a time, and continues when it returns: pass the numbers to a metrics library,
/// and do not wait.
public protocol WorkerMetrics: Sendable {
  /// Adds to a counter, such as `encoder_worker_segments_total`. Each counter begins with a 0, so that it exists before
  /// its first event.
  ///
  /// - Parameters:
  ///   - counter: its name.
  ///   - labels: `outcome` of `encoder_worker_batches_total`; none of the others.
  ///   - amount: at least 0.
  func increment(_ counter: String, _ labels: [(String, String)], by amount: Int)

  /// Records how long something took.
  ///
  /// - Parameters:
  ///   - timer: its name: `encoder_worker_batch_duration_seconds`, `encoder_worker_arrival_to_published_seconds` or
  ///     `encoder_worker_capture_to_published_seconds`.
  ///   - duration: to the publication of a batch from its claim, its arrival, or its last capture.
  func record(_ timer: String, _ duration: Duration)
}
