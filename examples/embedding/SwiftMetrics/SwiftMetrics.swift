import Metrics
import SegmentEncoder

/// Passes the metrics of a worker to the backend of swift-metrics.
struct SwiftMetrics: WorkerMetrics {
  func increment(_ counter: String, _ labels: [(String, String)], by amount: Int) {
    Counter(label: counter, dimensions: labels).increment(by: amount)
  }

  func record(_ timer: String, _ duration: Duration) { Timer(label: timer).record(duration: duration) }
}
