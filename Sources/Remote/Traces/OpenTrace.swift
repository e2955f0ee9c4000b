// The spans of one trace from its first span's beginning to its end. A worker reads a batch only after it has claimed it. So the trace of
// the producer comes late, and all spans get it when the first span ends: nothing is exported before.

#if Observability
  import FrameBatches
  import Synchronization

  /// A trace whose first span runs. For several threads.
  final class OpenTrace: Sendable {
    /// Spans in the first one: a batch leaves room for others in the exporter.
    static let maximumSpans = 1_023

    private struct State {
      var finished: [SpanRecord.Draft] = []
      var lost = 0
      /// The step of the producer that the first span continues.
      var parent: TraceParent?
    }

    private let ownID = OpenTrace.randomID() + OpenTrace.randomID()
    private let state: Mutex<State>
    private let sampler: TraceSampler
    private let exporter: SpanExporter

    init(_ exporter: SpanExporter, _ sampler: TraceSampler, continuing parent: TraceParent?) {
      (self.exporter, self.sampler) = (exporter, sampler)
      state = Mutex(State(parent: parent))
    }

    /// Returns the ID of a span, or half of a trace's: 16 hexadecimal digits.
    static func randomID() -> String {
      let digits = String(UInt64.random(in: 1 ... .max), radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// Continues the trace of a producer. The first one stays.
    func `continue`(_ parent: TraceParent) {
      state.withLock { state in
        if state.parent == nil { state.parent = parent }
      }
    }

    /// Returns a span as the step that others continue.
    func step(_ spanID: String) -> TraceParent? {
      let parent = state.withLock { $0.parent }
      let traceID = parent?.traceID ?? ownID
      return TraceParent(
        traceID: traceID, stepID: spanID, isSampled: sampler.samples(traceID, parent: parent))
    }

    /// Keeps a finished span until the first one ends.
    func add(_ span: SpanRecord.Draft) {
      state.withLock { state in
        if state.finished.count < Self.maximumSpans { state.finished.append(span) } else { state.lost += 1 }
      }
    }

    /// Exports all spans. A first span without attributes is a claim that another worker has won: it is not exported.
    func end(_ first: SpanRecord.Draft) {
      let (finished, lost, parent) = state.withLock { state in
        defer { state.finished = [] }
        return (state.finished, state.lost, state.parent)
      }
      let traceID = parent?.traceID ?? ownID
      guard !first.attributes.isEmpty, sampler.samples(traceID, parent: parent) else { return }
      if lost > 0 { exporter.lose(lost, because: "more than \(Self.maximumSpans) spans of a batch") }
      var first = first
      first.parentID = parent?.stepID
      exporter.add((finished + [first]).map { SpanRecord($0, traceID: traceID) })
    }
  }
#endif
