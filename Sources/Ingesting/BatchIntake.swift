import FrameBatches

/// The place that batches go to: a spool, or a store and a queue.
package protocol BatchIntake: Sendable {
  /// The directory for bodies on their way, on a disk with room.
  var drafts: String { get }
  /// Whether the file of a batch has its trace: ``KeptTrace``. Else the entry of the queue has it.
  var keepsTracesInFiles: Bool { get }
  /// Takes a batch; it is durable and workers see it when this returns. The call may be repeated.
  ///
  /// - Parameters:
  ///   - path: a file, synced; it may be moved.
  ///   - traceParent: the step of the sender's trace.
  func take(_ path: String, as name: String, digest: String, traceParent: TraceParent?) throws -> IntakeOutcome
  /// The receipt of a batch; nil if none was taken under this name in the last days.
  func receipt(of name: String) throws -> ReceiptLog.Receipt?
  /// The number of batches that wait for a worker.
  func waitingCount() throws -> Int
  /// Removes old receipts, a part of them at each call.
  func sweep(_ number: Int) throws
}

/// The outcome of a batch that came.
package enum IntakeOutcome: Sendable, Equatable {
  case taken
  /// The same batch was taken before.
  case known
  /// Another batch has the name.
  case conflict
}
