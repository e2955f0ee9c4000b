import FileSystem
import FrameBatches

extension BatchEncoder {
  /// A batch that was read.
  package struct ReadBatch: Sendable {
    var batch: BatchSessions
    let opening: Profile.Watch?
    /// Measures the stages of the batch; nil for nothing.
    let profile: Profile?

    /// Returns the batches that the limits allow: several if a folder of loose pictures is beyond them, else this one.
    ///
    /// - Throws: ``BadBatch``.
    package func parts(_ limits: PartLimits) throws -> [ReadBatch] {
      let parts = try batch.parts(limits)
      return parts.count > 1 ? parts.map { ReadBatch(batch: $0, opening: nil, profile: profile) } : [self]
    }

    /// The place of an input in a row.
    package enum Placement {
      case shown(ReadBatch)
      /// It has the same pictures as an input before.
      case same(asInput: String)
    }

    /// Places it behind the inputs before.
    ///
    /// - Throws: ``BadBatch``.
    package func place(in row: inout InputRow, named path: String) throws -> Placement {
      switch try row.place(batch, named: path) {
      case .shown(let placed): .shown(ReadBatch(batch: placed, opening: opening, profile: profile))
      case .same(let other): .same(asInput: other)
      }
    }

    /// The number of frames.
    package var frames: Int { batch.readers.reduce(0) { $0 + $1.batch.frames.count } }

    /// Whether it has finished segments.
    package var isFinished: Bool { batch.readers.contains { $0.batch.videos != nil } }

    /// Whether it ends a session.
    package var isFinal: Bool { batch.readers.contains { $0.batch.isFinal } }

    package var sessions: [SessionID] { batch.sessions }
    /// The step of the producer's trace.
    package var traceParent: TraceParent? { batch.readers.lazy.compactMap(\.batch.traceParent).first }
    /// Continues a trace in the sessions that state none.
    package mutating func continueTrace(of step: TraceParent) { batch.continueTrace(of: step) }
    /// The sessions, also those that cannot be published.
    package var allSessions: [SessionID] { sessions + batch.refused.compactMap { SessionID($0.session) } }
  }
}
