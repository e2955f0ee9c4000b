// The work on one batch, and the handling of its errors. Runs on the encoding threads.

import Encoding
import FileSystem
import FrameBatches
import Logging
import Sessions
import WorkQueues

package final class Worker: Sendable {
  /// A batch in the hands of an encoding thread.
  enum WorkItem: Sendable {
    /// A batch to claim.
    case waiting(QueueEntry)
    /// A claim that is retried after a failure of the environment.
    case held(Claim)
    /// A claim recovered from a dead worker. It is worked on alone: if this worker dies, too, this batch is the cause.
    case recovered(Claim)

    var claim: Claim? {
      switch self {
      case .waiting: nil
      case .held(let claim), .recovered(let claim): claim
      }
    }

    /// Whether the batch may have killed a worker.
    var runsAlone: Bool {
      switch self {
      case .waiting: false
      case .held(let claim): claim.attempt > 1
      case .recovered: true
      }
    }

    /// The batch's name; nil if the queue tells it only with the claim.
    var batch: String? { if case .waiting(let entry) = self { entry.name } else { claim?.name } }

    /// Whether it is this worker's first attempt.
    var isFirstAttempt: Bool { if case .held = self { false } else { true } }
  }

  enum Outcome {
    /// Published or quarantined.
    case done
    /// Put back, or another worker has it.
    case released
    /// The environment failed; the batch is still claimed if possible.
    case failed(WorkItem, any Error, about: Logger.Metadata)
  }

  package let queue: any BatchQueue
  package let store: any ArtifactStore
  package let logger: Logger
  package let meter: WorkerMeter
  package let jobs: JobWatch
  let options: BatchEncoder.Options
  /// Free bytes on the output's disk that a new batch needs.
  private let minFree: Int
  private let keyFrames = KeyFrameCache()
  private let keepBatches: Bool
  /// The timeout of a batch, in seconds.
  private let maxTime: Int

  /// Throws ``LowDiskSpace`` if less than ``minFree`` bytes are free.
  func requireRoom() throws {
    guard minFree > 0 else { return }
    let free = try store.staging.freeBytes()
    if free < minFree { throw LowDiskSpace(free: free, wanted: minFree) }
  }

  /// - Parameter counters: the counts before a restart.
  package init(
    _ id: WorkerID, queue: any BatchQueue, store: any ArtifactStore, options: BatchEncoder.Options, keepBatches: Bool,
    maxTime: Int, minFree: Int, counters: WorkerCounters = WorkerCounters(), logger: Logger,
    metrics: (any WorkerMetrics)? = nil
  ) {
    self.queue = queue
    self.store = store
    self.options = options
    self.keepBatches = keepBatches
    self.maxTime = maxTime
    self.minFree = minFree
    var own = logger
    own[metadataKey: "worker"] = "\(id)"
    self.logger = own
    meter = WorkerMeter(continuing: counters, metrics)
    jobs = JobWatch(maxTime: maxTime)
  }

  /// Makes an encoder for one thread.
  func makeEncoder() -> BatchEncoder { BatchEncoder(options, publishingTo: store, keyFrames: keyFrames) }

  package var counters: WorkerCounters { meter.now.counters }

  func perform(_ item: WorkItem, with encoder: BatchEncoder, isCancelled: @escaping () -> Bool) -> Outcome {
    var claim: Claim
    do {
      // Checked before each batch: other processes fill the disk, too.
      if item.isFirstAttempt { try requireRoom() }
      switch item {
      case .held(let held): claim = held
      case .recovered(let held):
        guard let begun = try queue.begin(held) else { return .released }
        claim = begun
      case .waiting(let entry):
        guard let claimed = try queue.claim(entry) else { return .released }
        claim = claimed
      }
    } catch {
      return item.claim.map(queue.hasLost) == true
        ? .released : failed(item, error, about: ["batch": "\(item.batch ?? "the next one")"])
    }
    logger.debug(
      "batch.claimed",
      metadata: [
        "batch": "\(claim.name)", "attempt": .stringConvertible(claim.attempt),
        "failures": .stringConvertible(claim.failures),
      ])
    jobs.begin(claim.name, encoder.stage)
    defer { jobs.end(encoder.stage) }
    let begunMs = MonotonicClock.milliseconds()
    let deadline = MonotonicClock.seconds() + maxTime
    var about: Logger.Metadata = ["batch": "\(claim.name)"]
    var sessions = BatchReader.session(ofBatchNamed: claim.name).map { [$0] } ?? []
    do {
      let isOver = { [queue, claim] in
        isCancelled() || MonotonicClock.seconds() >= deadline || queue.hasLost(claim)
      }
      let fetched: FetchedBatch
      switch try queue.fetch(claim) {
      case .alreadyFinished(isQuarantined: false): return .released
      case .alreadyFinished(isQuarantined: true):
        meter.add { $0.counters.quarantined += 1 }
        let found: Logger.Metadata = ["reason": "it had been quarantined"]
        logger.warning("batch.quarantined", metadata: about.merging(found) { $1 })
        return .done
      case .batch(let batch): fetched = batch
      }
      claim = fetched.claim
      let receipts = try publish(fetched, with: encoder, &about, &sessions, isCancelled: isOver)
      try finish(claim, receipts, sessions, begunMs: begunMs)
      return .done
    } catch {
      let isLate = error is Cancelled && !isCancelled()
      return dispose(
        claim, after: isLate ? BatchTimeout(seconds: maxTime) : error, sessions, begunMs: begunMs, about: about)
    }
  }

  /// Retires a batch. One with a deleted session is not kept.
  private func finish(_ claim: Claim, _ receipts: [Receipt], _ sessions: [SessionID], begunMs: Int) throws {
    let keep = try keepBatches && refusals(of: claim, sessions).isEmpty
    try queue.retire(claim, receipts, keep: keep)
    meter.add(receipts, tookMs: MonotonicClock.milliseconds() - begunMs)
    for receipt in receipts { log(receipt) }
  }

  /// Returns a receipt for each session that was deleted.
  private func refusals(of claim: Claim, _ sessions: [SessionID]) throws -> [Receipt] {
    try sessions.compactMap { try store.tombstone(of: $0) }
      .map { Receipt(refusing: claim.name, for: SessionDeleted($0)) }
  }

  /// Publishes a batch. If too many workers have died with it, it only looks whether the batch is published.
  ///
  /// - Parameter sessions: set to the sessions of the batch, as soon as they are known.
  private func publish(
    _ fetched: FetchedBatch, with encoder: BatchEncoder, _ about: inout Logger.Metadata,
    _ sessions: inout [SessionID], isCancelled: @escaping () -> Bool
  ) throws -> [Receipt] {
    defer { fetched.discard() }
    let claim = fetched.claim
    // After more deaths than this, workers also died while they only looked.
    if claim.attempt <= 2 * Claim.attempts {
      let batch: BatchEncoder.ReadBatch
      do {
        batch = try encoder.read(fetched.path, isCancelled: isCancelled)
      } catch let bad as BadBatch {
        if try store.hasTombstones() {
          sessions = try encoder.sessions(namedIn: fetched.path, isCancelled: isCancelled)
        }
        throw bad
      }
      sessions = batch.allSessions
      about["session"] = "\(batch.sessions.map(\.description).joined(separator: " "))"
      if claim.attempt <= Claim.attempts { return try encoder.publish(batch, isCancelled: isCancelled) }
      let receipts = try encoder.rollBack(batch, isCancelled: isCancelled)
      if !receipts.isEmpty { return receipts }
    }
    throw BadBatch(
      "encode", claim.name, "\(Claim.attempts) workers died while they worked on it",
      advice: "report this error with the batch")
  }

  /// Puts a batch back, quarantines it, or keeps it for a retry, by the disposition of its error. A batch with a deleted session
  /// does not go to quarantine, where its pictures would stay: it is refused.
  private func dispose(
    _ claim: Claim, after error: any Error, _ sessions: [SessionID], begunMs: Int, about: Logger.Metadata
  ) -> Outcome {
    do {
      if queue.hasLost(claim) {
        logger.notice("batch.lost", metadata: about.merging(["reason": "another worker has taken it over"]) { $1 })
        return .released
      }
      switch Disposition(of: error, batch: claim.name) {
      case .retry: return failed(.held(claim), error, about: about)
      case .unknown where claim.failures + 1 < Claim.unknownFailures:
        let failed = try queue.fail(claim)
        let failure = UnknownFailure(batch: claim.name, count: failed.failures, error: error)
        return .failed(.held(failed), failure, about: about)
      case .handBack:
        try queue.handBack(claim)
        logger.info("batch.returned", metadata: about)
        return .released
      case .quarantine(let reason), .unknown(let reason):
        let refusals = try refusals(of: claim, sessions)
        guard refusals.isEmpty else {
          try finish(claim, refusals, sessions, begunMs: begunMs)
          return .done
        }
        let name = try queue.quarantine(claim, reason)
        meter.add { $0.counters.quarantined += 1 }
        // The batch's name in quarantine.
        let found: Logger.Metadata = ["batch": "\(name)", "reason": "\(reason)", "advice": "\(reason.advice)"]
        logger.warning("batch.quarantined", metadata: about.merging(found) { $1 })
        return .done
      }
    } catch {
      return queue.hasLost(claim) ? .released : failed(.held(claim), error, about: about)
    }
  }

  private func failed(_ item: WorkItem, _ error: any Error, about: Logger.Metadata) -> Outcome {
    meter.add { $0.failures += 1 }
    let isEvicted = queue.fault == .workerEvicted || store.staging.isCutOff
    return .failed(item, isEvicted ? WorkerEvicted() : error, about: about)
  }

  private func log(_ receipt: Receipt) {
    let metadata: Logger.Metadata = ["batch": "\(receipt.batch)", "session": "\(receipt.session)"]
    for refused in receipt.refused {
      let about: Logger.Metadata = ["frame": "\(refused.source)", "reason": "\(refused.reason)"]
      logger.warning("frame.refused", metadata: metadata.merging(about) { $1 })
    }
    for warning in receipt.warnings {
      logger.warning("batch.warning", metadata: metadata.merging(["reason": "\(warning)"]) { $1 })
    }
    let counts: Logger.Metadata = [
      "segments": .stringConvertible(receipt.segments), "frames": .stringConvertible(receipt.frames),
    ]
    if let refusal = receipt.refusal {
      logger.notice("batch.refused", metadata: metadata.merging(["reason": "\(refusal)"]) { $1 })
      return
    }
    logger.info(
      receipt.duplicate ? "batch.duplicate" : "batch.published", metadata: metadata.merging(counts) { $1 })
  }
}

/// A batch exceeded its timeout.
struct BatchTimeout: Error, CustomStringConvertible {
  let seconds: Int
  var description: String { "stopped after \(seconds) s, the limit of --max-time" }
}

/// A failure for an unknown reason, which is counted.
struct UnknownFailure: Error, CustomStringConvertible {
  let batch: String
  /// The number of failures so far.
  let count: Int
  let error: any Error
  var description: String { "\(batch): \(error); try \(count) of \(Claim.unknownFailures)" }

  /// Seconds until the retry: a transient cause may pass.
  var pause: Int { 1 << (2 * (count - 1)) }
}

/// Less disk space is free than `--min-free` asks for.
struct LowDiskSpace: Error, CustomStringConvertible {
  let free: Int
  let wanted: Int
  var description: String { "\(free) bytes free in the output, less than the \(wanted) of --min-free" }
}

/// Another process took this worker for dead and removed its directory.
struct WorkerEvicted: Error, CustomStringConvertible {
  var description: String { "another process took this worker for dead and removed its directory; start it again" }
}
