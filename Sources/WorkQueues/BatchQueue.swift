// The queue of batches: waiting, claimed, or finished. The spool's directory is one such queue; what a worker does
// with it holds for any other.

import FrameBatches
import Sessions

/// A waiting batch.
package struct QueueEntry: Sendable {
  /// The batch's name; nil if the queue tells it only with the claim.
  package let name: String?
  /// The name in bytes, as the file system has it.
  package let bytes: [UInt8]

  package init(name: String?, bytes: [UInt8] = []) {
    self.name = name
    self.bytes = bytes
  }
}

/// A batch that this worker has claimed.
package struct Claim: Sendable {
  /// The batch's name.
  package let name: String
  /// The number of attempts; each one before this worker's ended with the death of a worker.
  package let attempt: Int
  /// The number of failures for unknown reasons.
  package let failures: Int
  /// The queue's token of the claim.
  package let token: String
  /// The tag of the fetched content, in queues whose batches can be replaced; nil before the fetch.
  package let tag: ObjectTag?

  package init(name: String, attempt: Int, failures: Int, token: String, tag: ObjectTag? = nil) {
    self.name = name
    self.attempt = attempt
    self.failures = failures
    self.token = token
    self.tag = tag
  }

  /// Maximum number of workers that may die with a batch before it is quarantined.
  package static let attempts = 3
  /// Maximum number of failures for unknown reasons before a batch is quarantined.
  package static let unknownFailures = 5
}

/// The result of fetching a claimed batch.
package enum FetchResult {
  case batch(FetchedBatch)
  /// An earlier worker has finished it; now it is acknowledged.
  case alreadyFinished(isQuarantined: Bool)
}

/// A batch to work on.
package struct FetchedBatch {
  /// The claim, with the tag of the content.
  package let claim: Claim
  /// A file or a directory.
  package let path: String
}

/// The state of a queue, as far as it is known.
package enum QueueStatus: Sendable {
  case spool(SpoolStatus)
  case counts(waiting: Int, claimed: Int)
}

/// A queue of batches, for several threads at once. A batch is in it until it is retired or in quarantine, even if a worker dies
/// meanwhile.
///
/// Every call may throw if the queue is unreachable. Nothing is lost then, and every call may be repeated.
package protocol BatchQueue: Sendable {
  /// The waiting batches, as far as they are visible.
  func waiting() throws -> [QueueEntry]
  /// Takes a batch.
  ///
  /// - Returns: nil when another worker was faster.
  func claim(_ offer: QueueEntry) throws -> Claim?
  /// Takes over the claims of dead workers. Each of them may have killed its worker, so it is worked on alone.
  ///
  /// - Returns: the claims, and the failures.
  func takeOver() throws -> (claims: [Claim], failures: [any Error])
  /// Counts an attempt of a batch that was taken over.
  ///
  /// - Returns: nil when another worker has it by now.
  func begin(_ claim: Claim) throws -> Claim?
  /// Counts a failure for an unknown reason.
  func fail(_ claim: Claim) throws -> Claim
  /// Fetches a batch. Call ``discard(_:)`` afterwards.
  func fetch(_ claim: Claim) throws -> FetchResult
  /// Removes the fetched copy. The batch stays claimed.
  func discard(_ batch: FetchedBatch)
  /// Puts a batch back into the queue.
  func handBack(_ claim: Claim) throws
  /// Removes a published batch, or keeps it.
  func retire(_ claim: Claim, _ receipts: [Receipt], keep: Bool) throws
  /// Moves a batch to quarantine, byte for byte, with the reason beside it.
  ///
  /// - Returns: its name in quarantine.
  @discardableResult
  func quarantine(_ claim: Claim, _ reason: BadBatch) throws -> String
  /// Whether another worker has taken the batch over, as far as it is known.
  func hasLost(_ claim: Claim) -> Bool
  /// Whether another process took this worker for dead; then it has to be started again.
  var isCutOff: Bool { get }
  /// Whether the queue has lost its data: then an empty queue does not mean that no batch waits.
  var lostState: Bool { get }
  /// The number of batches that workers of other hosts hold, dead or alive.
  func heldElsewhere() throws -> Int
  /// A descriptor that is readable when there may be more batches, to be closed by the caller; -1 if there is none.
  func watch() -> Int32
  /// The poll interval without such a descriptor, in milliseconds.
  var pollIntervalMs: Int { get }
  /// The state of the queue.
  func status(output: String) throws -> QueueStatus
  /// Writes the counters for status commands.
  func show(_ counters: WorkerCounters) throws
  /// Leaves the queue. Nothing may be claimed afterwards.
  func leave()
}
