import FrameBatches
import Logging
import Sessions

extension Worker {
  /// Logs what became of one session of a batch.
  ///
  /// - Parameter facts: of the batch. Its durations are those of all of its sessions.
  func log(_ receipt: Receipt, _ facts: BatchFacts) {
    let metadata = facts.trace.merging(["batch": "\(receipt.batch)", "session": "\(receipt.session)"]) { $1 }
    for refused in receipt.refused {
      let about: Logger.Metadata = ["frame": "\(refused.source)", "reason": "\(refused.reason)"]
      logger.warning("frame.refused", metadata: metadata.merging(about) { $1 })
    }
    for warning in receipt.warnings {
      logger.warning("batch.warning", metadata: metadata.merging(["reason": "\(warning)"]) { $1 })
    }
    var counts = facts.stages.facts.merging([
      "segments": .stringConvertible(receipt.segments), "frames": .stringConvertible(receipt.frames),
    ]) { $1 }
    if let health = receipt.health, health.sentence != nil {
      counts["missing"] = .stringConvertible(health.missing)
      counts["late"] = .stringConvertible(health.late)
    }
    if let refusal = receipt.refusal {
      logger.notice("batch.refused", metadata: metadata.merging(["reason": "\(refusal)"]) { $1 })
      return
    }
    logger.info(
      receipt.duplicate ? "batch.duplicate" : "batch.published", metadata: metadata.merging(counts) { $1 })
  }
}
