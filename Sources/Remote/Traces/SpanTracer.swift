// The tracer of the program, behind the trait `Observability`: the steps of a batch become spans that are exported.

#if Observability
  import FileSystem
  import FrameBatches
  import Synchronization
  import Tracing

  package struct SpanTracer: Tracer {
    private let exporter: SpanExporter
    private let sampler: TraceSampler

    package init(_ exporter: SpanExporter, _ sampler: TraceSampler) {
      (self.exporter, self.sampler) = (exporter, sampler)
    }

    package func startSpan<Instant: TracerInstant>(
      _ operationName: String, context: @autoclosure () -> ServiceContext, ofKind kind: SpanKind,
      at instant: @autoclosure () -> Instant, function: String, file fileID: String, line: UInt
    ) -> RecordedSpan {
      let outer = context()
      let current = outer[CurrentSpan.self]
      let trace = current?.trace ?? OpenTrace(exporter, sampler, continuing: outer[ProducerStep.self])
      return RecordedSpan(
        operationName, kind, of: trace, in: current?.id, context: outer, startNs: instant().nanosecondsSinceEpoch)
    }

    package func forceFlush() {}

    package func extract<Carrier, Extract: Extractor>(
      _ carrier: Carrier, into context: inout ServiceContext, using extractor: Extract
    ) where Extract.Carrier == Carrier {
      if let text = extractor.extract(key: TraceParent.key, from: carrier) {
        context[ProducerStep.self] = TraceParent(text)
      }
    }

    package func inject<Carrier, Inject: Injector>(
      _ context: ServiceContext, into carrier: inout Carrier, using injector: Inject
    ) where Inject.Carrier == Carrier {
      guard let current = context[CurrentSpan.self], let step = current.trace.step(current.id) else { return }
      injector.inject(step.description, forKey: TraceParent.key, into: &carrier)
    }
  }

  /// The span that runs.
  enum CurrentSpan: ServiceContextKey {
    struct Value: Sendable {
      let trace: OpenTrace
      let id: String
    }
  }

  /// The step of a producer's trace.
  enum ProducerStep: ServiceContextKey { typealias Value = TraceParent }

  /// A span that is exported after its end.
  package final class RecordedSpan: Span {
    /// Of a span.
    private static let (maximumAttributes, maximumEvents, maximumBytes) = (64, 32, 1_000)

    private struct State {
      var name: String
      var attributes: SpanAttributes = [:]
      var events: [SpanRecord.Event] = []
      var error: String?
      /// Whether the batch is put back, which is no error.
      var isCancelled = false
      var hasEnded = false

      /// The last message counts; `withSpan` gives none.
      mutating func fail(_ message: String?) { error = message ?? error ?? "" }
    }

    package let context: ServiceContext
    private let trace: OpenTrace
    private let id: String
    /// Nil for the first span of a trace.
    private let parentID: String?
    private let kind: SpanKind
    private let startNs: UInt64
    private let state: Mutex<State>

    init(
      _ name: String, _ kind: SpanKind, of trace: OpenTrace, in parentID: String?, context: ServiceContext,
      startNs: UInt64
    ) {
      (self.trace, self.parentID, self.kind, self.startNs) = (trace, parentID, kind, startNs)
      id = OpenTrace.randomID()
      var inner = context
      inner[CurrentSpan.self] = CurrentSpan.Value(trace: trace, id: id)
      self.context = inner
      state = Mutex(State(name: name))
    }

    package var operationName: String {
      get { state.withLock { $0.name } }
      set { state.withLock { $0.name = newValue } }
    }

    package var attributes: SpanAttributes {
      get { state.withLock { $0.attributes } }
      set { state.withLock { $0.attributes = newValue } }
    }

    package var isRecording: Bool { state.withLock { !$0.hasEnded } }

    package func setStatus(_ status: SpanStatus) {
      state.withLock { state in
        if status.code != .error || state.isCancelled { state.error = nil } else { state.fail(status.message) }
      }
    }

    package func addEvent(_ event: SpanEvent) {
      add(
        SpanRecord.Event(
          name: event.name, timeNs: event.nanosecondsSinceEpoch, attributes: Self.values(of: event.attributes)))
    }

    package func recordError<Instant: TracerInstant>(
      _ error: any Error, attributes: SpanAttributes, at instant: @autoclosure () -> Instant
    ) {
      if error is Cancelled { return state.withLock { $0.isCancelled = true } }
      let message = "\(error)".oneLine.shortened(to: Self.maximumBytes)
      var values = Self.values(of: attributes)
      values["exception.type"] = .text("\(type(of: error))")
      values["exception.message"] = .text(message)
      add(SpanRecord.Event(name: "exception", timeNs: instant().nanosecondsSinceEpoch, attributes: values))
      state.withLock { $0.fail(message) }
    }

    private func add(_ event: SpanRecord.Event) {
      state.withLock { state in
        if state.events.count < Self.maximumEvents { state.events.append(event) }
      }
    }

    /// The first span of a trace continues the step that it is linked to.
    package func addLink(_ link: SpanLink) {
      if parentID == nil, let step = link.context[ProducerStep.self] { trace.continue(step) }
    }

    package func end<Instant: TracerInstant>(at instant: @autoclosure () -> Instant) {
      let endNs = max(startNs, instant().nanosecondsSinceEpoch)
      guard
        let state = state.withLock({ state -> State? in
          if state.hasEnded { return nil }
          state.hasEnded = true
          return state
        })
      else { return }
      let record = SpanRecord.Draft(
        id: id, parentID: parentID, name: state.name, kind: Self.kind(of: kind), startNs: startNs, endNs: endNs,
        attributes: Self.values(of: state.attributes), events: state.events, error: state.error)
      if parentID == nil { trace.end(record) } else { trace.add(record) }
    }

    private static func kind(of kind: SpanKind) -> SpanRecord.Kind {
      switch kind {
      case .server: .server
      case .client: .client
      case .producer: .producer
      case .consumer: .consumer
      case .internal: .internal
      }
    }

    private static func values(of attributes: SpanAttributes) -> [String: SpanRecord.Value] {
      var values: [String: SpanRecord.Value] = [:]
      func add(_ name: String, _ attribute: SpanAttribute) {
        if values.count < maximumAttributes { values[name] = value(of: attribute) }
      }
      attributes.forEach(add)
      return values
    }

    private static func value(of attribute: SpanAttribute) -> SpanRecord.Value {
      func text(_ text: String) -> SpanRecord.Value { .text(text.shortened(to: maximumBytes)) }
      switch attribute {
      case .int32(let number): return .whole(Int64(number))
      case .int64(let number): return .whole(number)
      case .double(let number): return .real(number)
      case .bool(let flag): return .flag(flag)
      case .string(let words): return text(words)
      case .stringConvertible(let value): return text("\(value)")
      case .stringArray(let texts): return .list(texts.prefix(maximumAttributes).map(text))
      case .int64Array(let numbers): return .list(numbers.prefix(maximumAttributes).map { .whole($0) })
      default: return text("\(attribute)")
      }
    }
  }
#endif
