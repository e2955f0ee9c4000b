// The trait `Observability` of the package: swift-metrics, and swift-distributed-tracing. Without it, steps have no spans, and a worker
// counts only in the `WorkerMetrics` that it is given.

import FileSystem
import FrameBatches
import Sessions

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

  /// Takes the `traceparent` that a tracer writes for a request.
  private struct TraceParentInjector: Injector {
    func inject(_ value: String, forKey key: String, into carrier: inout TraceParent?) {
      if key.lowercased() == TraceParent.key { carrier = TraceParent(value) }
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
      try withSpan(rawValue, ofKind: self == .batch ? .consumer : .internal) { try body(StepSpan(span: $0)) }
    #else
      try body(StepSpan())
    #endif
  }

  /// Runs the step.
  func run<Result>(_ body: () throws -> Result) rethrows -> Result { try runInSpan { _ in try body() } }

  /// Runs the step of a session.
  func run<Result>(of session: SessionID, _ body: () throws -> Result) rethrows -> Result {
    try runInSpan { span in
      span.note(session)
      return try body()
    }
  }
}

/// The span of a step that runs.
struct StepSpan {
  #if Observability
    fileprivate let span: any Span

    private enum Attribute {
      static let batch = "encoder_worker.batch"
      static let session = "encoder_worker.session"
      static let sessions = "encoder_worker.sessions"
      static let segments = "encoder_worker.segments"
      static let frames = "encoder_worker.frames"
      /// Of the sessions in a span; a batch may have a thousand.
      static let listed = 20
    }
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

  /// The span as a step of its trace, for requests that it causes; nil if the process' tracing system has none.
  var traceParent: TraceParent? {
    #if Observability
      var step: TraceParent?
      InstrumentationSystem.instrument.inject(span.context, into: &step, using: TraceParentInjector())
      return step
    #else
      nil
    #endif
  }

  /// Notes the batch and its sessions.
  func note(_ facts: BatchFacts) {
    #if Observability
      let sessions = facts.sessions.prefix(Attribute.listed).map(\.description)
      span.updateAttributes {
        $0.set(Attribute.batch, value: .string(facts.batch))
        $0.set(Attribute.sessions, value: .stringArray(sessions))
      }
    #endif
  }

  /// Notes the session.
  func note(_ session: SessionID) {
    #if Observability
      span.updateAttributes { $0.set(Attribute.session, value: .string(session.description)) }
    #endif
  }

  /// Notes what is published.
  func note(_ receipts: [Receipt]) {
    #if Observability
      let (segments, frames) = receipts.reduce((0, 0)) { ($0.0 + $1.segments, $0.1 + $1.frames) }
      span.updateAttributes {
        $0.set(Attribute.segments, value: .int(Int64(segments)))
        $0.set(Attribute.frames, value: .int(Int64(frames)))
      }
    #endif
  }

  /// Notes the error that ends the step. A batch that is put back has none.
  func fail(_ error: any Error) {
    #if Observability
      guard !(error is Cancelled) else { return }
      span.recordError(error)
      span.setStatus(SpanStatus(code: .error, message: "\(error)".oneLine.shortened(to: 1_000)))
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
