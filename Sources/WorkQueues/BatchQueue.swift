// The queue of batches. The spool is one such queue, a queue of names beside an object store is the other.

import FrameBatches
import Notifying
import Sessions

/// A waiting batch.
package struct QueueEntry: Sendable {
  /// The batch's name; nil if the queue tells it only with the claim.
  package let name: String?
  /// The name in bytes, as the file system has it.
  var bytes: [UInt8] = []
}

/// A batch that this worker has claimed.
package struct Claim: Sendable, Equatable {
  /// The queue's ID of the claim.
  package let id: String
  /// The batch's name.
  package let name: String
  /// The number of attempts; each one before this worker's ended with the death of a worker.
  package let attempt: Int
  /// The number of failures for unknown reasons.
  package let failures: Int
  /// The tag of the fetched content, in queues whose batches can be replaced; nil before the fetch.
  package var tag: ObjectTag?
  /// The step of the trace that the queue tells; a step that the batch states itself comes before it.
  package var traceParent: TraceParent?
  /// When the batch came into the queue, in unix milliseconds by the clock of the file system, of Redis or of SQS. One that was put
  /// back came anew. Nil if the queue does not tell.
  package var arrivedMs: Int64?

  package init(id: String, name: String, attempt: Int, failures: Int, traceParent: TraceParent? = nil) {
    self.id = id
    self.name = name
    self.attempt = attempt
    self.failures = failures
    self.traceParent = traceParent
  }

  /// Returns the claim with other counts.
  package func with(attempt: Int? = nil, failures: Int? = nil) -> Claim {
    var next = Claim(
      id: id, name: name, attempt: attempt ?? self.attempt, failures: failures ?? self.failures,
      traceParent: traceParent)
    next.tag = tag
    next.arrivedMs = arrivedMs
    return next
  }

  /// The instants that a queue may tell, in unix milliseconds.
  package static let instants: ClosedRange<Int64> = 0...1 << 42

  /// Maximum number of workers that may die with a batch before it is quarantined.
  package static let attempts = 3
  /// Maximum number of failures for unknown reasons before a batch is quarantined.
  package static let unknownFailures = 5
}

/// The result of fetching a claimed batch.
package enum FetchResult {
  case batch(FetchedBatch)
  /// It is finished; now it is acknowledged.
  case alreadyFinished(FinishedEarlier)
}

/// How a batch was finished before it was claimed.
package enum FinishedEarlier: Sendable {
  /// It was published, or refused.
  case published
  case quarantined
  /// It is not there, and nothing tells its outcome.
  case gone
}

/// A batch to work on.
package struct FetchedBatch {
  /// The claim, with the tag of the content.
  package let claim: Claim
  /// A file or a directory.
  package let path: String
  /// The directory of a fetched copy; nil if the batch itself lies at `path`.
  var copy: Staging.Scratch?

  /// Removes the fetched copy. The batch stays claimed.
  package func discard() { copy?.remove() }
}

/// The state of a queue, as far as it is known.
package enum QueueStatus: Sendable {
  case spool(SpoolStatus)
  case counts(waiting: Int, claimed: Int)
}

/// A fault of a queue that no retry mends.
package enum QueueFault: Sendable {
  /// Another process took this worker for dead; the worker has to be started again.
  case workerEvicted
  /// The queue has lost its data: an empty queue does not mean that no batch waits.
  case dataLost
}

/// A queue of batches, for several threads at once. A batch is in it until it is retired or in quarantine.
///
/// Every call may throw if the queue is unreachable. Nothing is lost then, and every call may be repeated.
package protocol BatchQueue: Sendable {
  /// The waiting batches, as far as they are visible.
  func waiting() throws -> [QueueEntry]
  /// Claims a batch.
  ///
  /// - Returns: nil when another worker was faster.
  func claim(_ entry: QueueEntry) throws -> Claim?
  /// Whether the queue is not to be asked for batches now: a claim has just brought nothing. It is not empty for that.
  var isPausing: Bool { get }
  /// The number of claims in a row that brought nothing although the queue counts waiting batches.
  var emptyClaims: Int { get }
  /// Takes over the claims of dead workers. Each of them may have killed its worker, so it is worked on alone.
  func takeOver() throws -> (claims: [Claim], failures: [any Error])
  /// Counts an attempt of a batch that was taken over.
  ///
  /// - Returns: nil when another worker has it by now.
  func begin(_ claim: Claim) throws -> Claim?
  /// Counts a failure for an unknown reason.
  func fail(_ claim: Claim) throws -> Claim
  /// Fetches a batch. Call ``FetchedBatch/discard()`` afterwards.
  func fetch(_ claim: Claim) throws -> FetchResult
  /// Puts a batch back into the queue.
  func handBack(_ claim: Claim) throws
  /// Whether the queue itself tells others of finished batches.
  var takesEvents: Bool { get }
  /// Tells others of a finished batch, before it is retired or quarantined. The same event may come more than once.
  ///
  /// - Parameters:
  ///   - key: the event's idempotency key.
  ///   - event: one line of JSON.
  func announce(_ claim: Claim, key: String, event: String) throws
  /// Tells others of something that is no batch. The same event may come more than once.
  ///
  /// - Parameters:
  ///   - key: the event's idempotency key.
  ///   - event: one line of JSON.
  func announce(key: String, event: String) throws
  /// The names of the batches that wait or are in work.
  ///
  /// - Parameter limit: of their number.
  func owed(limit: Int) throws -> [String]
  /// Whether pictures of a session, which is to end, are not in batches yet.
  func isClosing(_ session: SessionID) throws -> Bool
  /// Forgets the attempts that ended with the death of a worker: the batch is finished, and waits only for the delivery of
  /// its event. The deaths of workers that hold it from now on do not count.
  func forgive(_ claim: Claim) throws -> Claim
  /// The events that their receiver has refused.
  var notifications: RefusedNotifications { get }
  /// Removes a published batch, or keeps it.
  func retire(_ claim: Claim, _ receipts: [Receipt], keep: Bool) throws
  /// Whether an operator has accepted that a batch of this mark is published as it is: see ``BadBatch/marks``.
  func isAccepted(_ mark: String) throws -> Bool
  /// Returns the command with which an operator accepts that.
  ///
  /// - Parameter name: of the batch in quarantine.
  func acceptingCommand(_ name: String) -> String
  /// Moves a batch to quarantine, byte for byte, with the reason beside it.
  ///
  /// - Returns: its name in quarantine.
  @discardableResult
  func quarantine(_ claim: Claim, _ reason: BadBatch) throws -> String
  /// Whether another worker has taken the batch over, as far as it is known.
  func hasLost(_ claim: Claim) -> Bool
  var fault: QueueFault? { get }
  /// The number of batches that workers of other hosts hold, dead or alive.
  func heldElsewhere() throws -> Int
  /// A descriptor that is readable when there may be more batches, to be closed by the caller, or -1; and the poll
  /// interval in milliseconds, for batches that the descriptor does not tell of.
  func watch() -> (descriptor: Int32, pollMs: Int)
  func status(output: String) throws -> QueueStatus
  /// Writes the counters for status commands.
  func show(_ counters: WorkerCounters) throws
  /// Leaves the queue. Nothing may be claimed afterwards.
  func leave()
}

extension BatchQueue {
  package var isPausing: Bool { false }
  package var emptyClaims: Int { 0 }
}

extension BadBatch {
  /// Returns the remedy for the producer, and that for the operator.
  package func advice(ofQuarantined name: String, in queue: any BatchQueue) -> String {
    advice(accepting: queue.acceptingCommand(name))
  }

  /// - Parameter command: publishes the batch as it is.
  func advice(accepting command: String) -> String {
    marks.isEmpty ? advice : "\(advice); or publish it as it is: \(command)"
  }
}
