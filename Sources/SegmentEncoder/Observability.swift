// The trait `Observability` of the package: swift-metrics, and swift-distributed-tracing. Without it, steps have no spans, and a worker
// counts only in the `WorkerMetrics` that it is given.

import FileSystem
import FrameBatches

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

  /// Reads a producer's `traceparent` like the header of a request.
  private struct TraceParentExtractor: Extractor {
    func extract(key: String, from carrier: TraceParent) -> String? {
      key.lowercased() == TraceParent.key ? carrier.description : nil
    }
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
  case batch, claim, read, decode, encode, publish, notify

  /// Runs the step, and gives it its span.
  func runInSpan<Result>(_ body: (StepSpan) throws -> Result) rethrows -> Result {
    #if Observability
      try withSpan(rawValue) { try body(StepSpan(span: $0)) }
    #else
      try body(StepSpan())
    #endif
  }

  /// Runs the step.
  func run<Result>(_ body: () throws -> Result) rethrows -> Result { try runInSpan { _ in try body() } }
}

/// The span of a step that runs.
struct StepSpan {
  #if Observability
    fileprivate let span: any Span
  #endif

  /// Links the span to the step of the producer's trace: the batch was claimed before anybody could read that.
  func link(to producer: TraceParent?) {
    #if Observability
      guard let producer else { return }
      var context = ServiceContext.topLevel
      InstrumentationSystem.instrument.extract(producer, into: &context, using: TraceParentExtractor())
      span.addLink(SpanLink(context: context, attributes: [:]))
    #endif
  }
}

/// The span of the decoding of a session. A session's pictures are decoded and encoded in turns: the span lasts as long as all its
/// decoding together, from the beginning of the encoding.
struct TracedDecoding {
  /// Measures the decoding.
  let profile: Profile?

  #if Observability
    private let began = DefaultTracerClock.now

    init(_ profile: Profile?) { self.profile = profile ?? Profile() }

    func end() {
      let lastedNs = UInt64(max(0, profile?.wallNs(of: [.decode, .convert, .sandbox]) ?? 0))
      startSpan(TracedStep.decode.rawValue, at: began).end(
        at: DefaultTracerClock.Timestamp(nanosecondsSinceEpoch: began.nanosecondsSinceEpoch &+ lastedNs))
    }
  #else
    init(_ profile: Profile?) { self.profile = profile }

    func end() {}
  #endif
}
