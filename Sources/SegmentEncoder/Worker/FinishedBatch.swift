import FrameBatches
import Logging
import Sessions
import WorkQueues

/// A batch that is published, or cannot be. It stays claimed until its event is delivered.
struct FinishedBatch: Sendable {
  enum Ending: Sendable {
    /// - Parameter tookMs: the time since the claim.
    case retire([Receipt], tookMs: Int)
    case quarantine(BadBatch)
  }

  var claim: Claim
  let ending: Ending
  /// The facts for the log.
  let about: Logger.Metadata

  var event: BatchEvent {
    switch ending {
    case .retire(let receipts, _): BatchEvent(batch: claim.name, receipts)
    case .quarantine(let reason): BatchEvent(batch: claim.name, reason)
    }
  }

  /// Whether the deaths of workers that wait for the delivery say nothing of the batch. After too many deaths, the batch goes
  /// to quarantine for them, and the next worker has to know it.
  var isBlameless: Bool {
    if case .quarantine = ending { claim.attempt <= Claim.attempts } else { true }
  }
}
