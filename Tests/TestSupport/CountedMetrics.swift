import SegmentEncoder
import Synchronization

/// Metrics of an embedded worker, in the notation of Prometheus.
public final class CountedMetrics: WorkerMetrics {
  private let state = Mutex<(counters: [String: Int], durations: [String: [Duration]])>(([:], [:]))

  public init() {}

  public func increment(_ counter: String, _ labels: [(String, String)], by amount: Int) {
    let label = labels.map { "\($0)=\"\($1)\"" }.joined(separator: ",")
    state.withLock { $0.counters[label.isEmpty ? counter : "\(counter){\(label)}", default: 0] += amount }
  }

  public func record(_ timer: String, _ duration: Duration) {
    state.withLock { $0.durations[timer, default: []].append(duration) }
  }

  public var counters: [String: Int] { state.withLock { $0.counters } }

  /// The number of durations by name.
  public var durations: [String: Int] { state.withLock { $0.durations.mapValues(\.count) } }

  public func batches(_ outcome: String) -> Int? {
    counters["encoder_worker_batches_total{outcome=\"\(outcome)\"}"]
  }
}
