import FileSystem
import FrameBatches
import Logging
import Notifying
import Sessions
import WorkQueues

/// A batch that is published, or cannot be. It stays claimed until its event is delivered.
package struct FinishedBatch: Sendable {
  enum Ending: Sendable {
    /// - Parameter tookMs: the time since the claim.
    case retire([Receipt], tookMs: Int)
    case quarantine(BadBatch)
  }

  var claim: Claim
  let ending: Ending
  var facts: BatchFacts
  /// When it was published, in unix milliseconds.
  let endedMs = WallClock.nowMs
  /// The same on the monotonic clock.
  let endedAt = MonotonicClock.milliseconds()

  var event: BatchEvent {
    switch ending {
    case .retire(let receipts, _):
      BatchEvent(
        batch: claim.name, receipts, durationsMs: facts.stages.json, traceParent: facts.traceParent, step: facts.step)
    case .quarantine(let reason):
      BatchEvent(batch: claim.name, reason, traceParent: facts.traceParent, step: facts.step)
    }
  }

  /// Whether the deaths of workers that wait for the delivery say nothing of the batch. After too many deaths, the batch goes
  /// to quarantine for them, and the next worker has to know it.
  var isBlameless: Bool {
    if case .quarantine = ending { claim.attempt <= Claim.attempts } else { true }
  }
}

extension Claim {
  /// The counts for the log.
  var counts: Logger.Metadata {
    let counts: Logger.Metadata = [
      "batch": "\(name)", "attempt": .stringConvertible(attempt), "failures": .stringConvertible(failures),
    ]
    return counts.merging(BatchFacts.trace(traceParent)) { $1 }
  }
}
