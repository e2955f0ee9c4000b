// The trait `Observability` of the package: swift-metrics, and swift-distributed-tracing. Without it, steps have no spans, and a worker
// counts only in the `WorkerMetrics` that it is given.

#if Observability
  import Metrics
  import Tracing

  /// The metrics of the system that the process has bootstrapped.
  private struct SystemMetrics: WorkerMetrics {
    func increment(_ counter: String, _ labels: [(String, String)], by amount: Int) {
      Counter(label: counter, dimensions: labels).increment(by: amount)
    }

    func record(_ timer: String, _ duration: Duration) { Timer(label: timer).record(duration: duration) }
  }
#endif

/// The metrics of a worker that was given none.
var systemMetrics: (any WorkerMetrics)? {
  #if Observability
    SystemMetrics()
  #else
    nil
  #endif
}

/// A step of a batch. It is a span of the process' tracing system.
enum TracedStep: String {
  case batch, claim, read, encode, publish, notify

  /// Runs the step.
  func run<Result>(_ body: () throws -> Result) rethrows -> Result {
    #if Observability
      try withSpan(rawValue) { _ in try body() }
    #else
      try body()
    #endif
  }
}
