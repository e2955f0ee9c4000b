// The queue of batches: waiting, claimed, or finished. The spool's directory is one such queue; what a worker does
// with it holds for any other.

import FrameBatches
import Sessions

/// A batch that is owed.
package struct QueueEntry: Sendable {
  /// The batch's name; nil where the queue tells only who takes it.
  package let name: String?
  /// The name as the system has it.
  package let bytes: [UInt8]

  package init(name: String?, bytes: [UInt8] = []) {
    self.name = name
    self.bytes = bytes
  }
}

/// A batch that this worker has taken.
package struct Claim: Sendable {
  /// The batch's name.
  package let name: String
  /// How often work on it has begun; each beginning but this worker's own ended with a worker's death.
  package let attempt: Int
  /// How often work on it has failed for unknown reasons.
  package let failures: Int
  /// The queue's token of the claim.
  package let token: String
  /// The content that was fetched, where the queue's batches can be replaced meanwhile; nil before.
  package let tag: ObjectTag?

  package init(name: String, attempt: Int, failures: Int, token: String, tag: ObjectTag? = nil) {
    self.name = name
    self.attempt = attempt
    self.failures = failures
    self.token = token
    self.tag = tag
  }

  /// How many workers may die with a batch before it is taken for what kills them.
  package static let attempts = 3
  /// How often it may fail for unknown reasons, before it is given up.
  package static let unknownFailures = 5
}

/// The content of a batch that has been claimed, where it is still owed.
package enum FetchResult {
  case batch(FetchedBatch)
  /// A worker before has finished it; now the queue is rid of it.
  case alreadyFinished(isQuarantined: Bool)
}

/// A batch to work on.
package struct FetchedBatch {
  /// The claim, with what the queue knows of the content.
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
/// All of it throws when the queue cannot be asked; nothing is lost by that, and what has been begun can be done again.
package protocol BatchQueue: Sendable {
  /// The waiting batches, as far as they are visible.
  func waiting() throws -> [QueueEntry]
  /// Takes a batch.
  ///
  /// - Returns: nil when another worker was faster.
  func claim(_ offer: QueueEntry) throws -> Claim?
  /// Takes over what dead workers held. Any of these may be what killed its worker: each is to be worked on alone, so that another
  /// death says which one it was.
  ///
  /// - Returns: what was taken over, and what could not be.
  func takeOver() throws -> (claims: [Claim], failures: [any Error])
  /// Writes down that work begins on a batch that was taken over.
  ///
  /// - Returns: nil when another worker has it by now.
  func begin(_ claim: Claim) throws -> Claim?
  /// Writes down that work on a batch has failed for an unknown reason.
  func fail(_ claim: Claim) throws -> Claim
  /// Fetches a batch, to be worked on. It has to be discarded afterwards.
  func fetch(_ claim: Claim) throws -> FetchResult
  /// Removes what was fetched. The batch stays claimed.
  func discard(_ batch: FetchedBatch)
  /// Puts a batch back as if it had never been taken.
  func handBack(_ claim: Claim) throws
  /// The batch is published: it goes, or is kept.
  func retire(_ claim: Claim, _ receipt: Receipt, keep: Bool) throws
  /// Keeps a batch that cannot be encoded, byte for byte, with the reason beside it.
  ///
  /// - Returns: its name in quarantine.
  @discardableResult
  func quarantine(_ claim: Claim, _ reason: BadBatch) throws -> String
  /// Whether another worker, which took this one for dead, has the batch, or took it away, as far as one knows.
  func hasLost(_ claim: Claim) -> Bool
  /// Whether this worker was taken for dead, and cannot claim anything any more; it has to be started again.
  var isCutOff: Bool { get }
  /// Whether the queue has lost what it knew: that nothing waits then does not say that nothing is owed.
  var lostState: Bool { get }
  /// How many batches others hold whom we cannot ask whether they live.
  func heldElsewhere() throws -> Int
  /// Something to wait for beside the time: readable when there may be more. To be closed by the caller; -1 where there is none.
  func watch() -> Int32
  /// How long to wait for more, in milliseconds, where nothing says that there is.
  var pollIntervalMs: Int { get }
  /// The state of the queue.
  func status(output: String) throws -> QueueStatus
  /// Writes the counters for status commands.
  func show(_ counters: WorkerCounters) throws
  /// Leaves the queue; nothing is claimed any more.
  func leave()
}
