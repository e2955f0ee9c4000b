// The work on one batch, and the handling of its errors. Called on the encoding threads.

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

    /// The claim, if there is one.
    var claim: Claim? {
      switch self {
      case .waiting: nil
      case .held(let claim), .recovered(let claim): claim
      }
    }

    /// Whether the batch may have killed a worker.
    var runsAlone: Bool { claim.map { $0.attempt > 1 } ?? false || isRescued }

    /// The batch's name.
    var batch: String {
      switch self {
      case .waiting(let offer): offer.name ?? "the next one"
      case .held(let claim), .recovered(let claim): claim.name
      }
    }

    /// Whether the item names a batch.
    var isOfOneBatch: Bool { if case .waiting(let offer) = self { offer.name != nil } else { true } }

    /// Whether it is this worker's first attempt.
    var begins: Bool { if case .held = self { false } else { true } }

    private var isRescued: Bool { if case .recovered = self { true } else { false } }
  }

  enum Outcome {
    case published, quarantined, handedBack
    /// Another worker has it.
    case gone
    /// The environment failed; the batch is still claimed if possible.
    case failed(WorkItem, any Error, about: Logger.Metadata)
  }

  let queue: any BatchQueue
  package let store: any ArtifactStore
  package let logger: Logger
  package let counters: SharedCounters
  package let meter = WorkerMeter()
  package let jobs: JobWatch
  /// Free bytes on the output's disk that a new batch needs.
  let minFree: Int
  private let memory = KeyFrameCache()
  private let options: BatchEncoder.Options
  private let keepBatches: Bool
  /// The timeout of a batch, in seconds.
  private let maxTime: Int

  /// Throws ``LowDiskSpace`` if less than ``minFree`` bytes are free.
  func requireRoom() throws {
    guard minFree > 0 else { return }
    let free = try store.staging.freeBytes()
    if free < minFree { throw LowDiskSpace(free: free, wanted: minFree) }
  }

  /// - Parameter tally: the counts that it continues.
  package init(
    _ id: WorkerID, queue: any BatchQueue, store: any ArtifactStore, options: BatchEncoder.Options, keepBatches: Bool,
    maxTime: Int, minFree: Int, counters: WorkerCounters = WorkerCounters(), logger: Logger
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
    self.counters = SharedCounters(continuing: counters)
    jobs = JobWatch(maxTime: maxTime)
  }

  /// Makes an encoder for one thread.
  func makeEncoder() -> BatchEncoder {
    BatchEncoder(options, publishingTo: store, memory: memory)
  }

  /// Returns how long to wait until ``flushPending(all:)`` is due, in milliseconds.
  ///
  /// - Parameter restMs: the longest wait.
  func pollIntervalMs(atMost pollIntervalMs: Int) -> Int {
    store.dueInMs.map { min(pollIntervalMs, max($0, 20)) } ?? pollIntervalMs
  }

  /// Updates the views of sessions.
  ///
  /// - Parameter all: whether to update views that are not due, too.
  /// - Returns: the updates that failed.
  func flushPending(all: Bool = false) -> [ViewUpdateFailure] { store.flushPending(all: all) }

  /// Ends idle decoders.
  func endIdleDecoders() { options.decoders?.endIdle() }

  /// The state of the queue for metrics.
  package func status() throws -> QueueStatus { try queue.status(output: store.staging.output) }

  func perform(_ item: WorkItem, with encoder: BatchEncoder, isCancelled: @escaping () -> Bool) -> Outcome {
    var claim: Claim
    do {
      // Checked before each batch: other processes fill the disk, too.
      if item.begins { try requireRoom() }
      switch item {
      case .held(let held): claim = held
      case .recovered(let held):
        guard let begun = try queue.begin(held) else { return .gone }
        claim = begun
      case .waiting(let offer):
        guard let taken = try queue.claim(offer) else { return .gone }
        claim = taken
      }
    } catch {
      return item.claim.map(queue.hasLost) == true
        ? .gone : failed(item, error, about: ["batch": "\(item.batch)"])
    }
    logger.debug(
      "batch.claimed",
      metadata: [
        "batch": "\(claim.name)", "attempt": .stringConvertible(claim.attempt),
        "failures": .stringConvertible(claim.failures),
      ])
    let job = jobs.begin(claim.name, encoder.stage)
    defer { jobs.end(job) }
    let begunMs = MonotonicClock.milliseconds()
    let deadline = MonotonicClock.seconds() + maxTime
    var about: Logger.Metadata = ["batch": "\(claim.name)"]
    do {
      let isOver = { [queue, claim] in
        isCancelled() || MonotonicClock.seconds() >= deadline || queue.hasLost(claim)
      }
      let fetched: FetchedBatch
      switch try queue.fetch(claim) {
      case .alreadyFinished(let isQuarantined): return finishedBefore(claim, isQuarantined: isQuarantined)
      case .batch(let batch): fetched = batch
      }
      claim = fetched.claim
      let receipt = try publish(fetched, with: encoder, &about, isCancelled: isOver)
      try queue.retire(claim, receipt, keep: keepBatches)
      meter.note(receipt, tookMs: MonotonicClock.milliseconds() - begunMs)
      report(receipt)
      return .published
    } catch {
      let isLate = error is Cancelled && !isCancelled()
      return dispose(claim, after: isLate ? BatchTimeout(seconds: maxTime) : error, about: about)
    }
  }

  /// Publishes a batch. If too many workers have died with it, it only looks whether the batch is published.
  private func publish(
    _ fetched: FetchedBatch, with encoder: BatchEncoder, _ about: inout Logger.Metadata,
    isCancelled: @escaping () -> Bool
  ) throws -> Receipt {
    defer { queue.discard(fetched) }
    let claim = fetched.claim
    // Workers also died while they only looked: do not look again.
    if claim.attempt > 2 * Claim.attempts { throw Self.tooManyDeaths(claim) }
    let batch = try encoder.read(fetched.path, isCancelled: isCancelled)
    about["session"] = "\(batch.session)"
    guard claim.attempt > Claim.attempts else { return try encoder.publish(batch, isCancelled: isCancelled) }
    guard let receipt = try encoder.rollBack(batch, isCancelled: isCancelled) else { throw Self.tooManyDeaths(claim) }
    return receipt
  }

  /// A worker died, or lost the queue, right before it acknowledged the batch.
  private func finishedBefore(_ claim: Claim, isQuarantined: Bool) -> Outcome {
    guard isQuarantined else { return .gone }
    counters.add { $0.quarantined += 1 }
    logger.warning("batch.quarantined", metadata: ["batch": "\(claim.name)", "reason": "it had been quarantined"])
    return .quarantined
  }

  private static func tooManyDeaths(_ claim: Claim) -> BadBatch {
    BadBatch(
      "encode", claim.name, "\(Claim.attempts) workers died while they worked on it",
      advice: "report this error with the batch")
  }

  /// Leaves the queue and removes this worker's files.
  func leave() {
    queue.leave()
    store.staging.remove()
  }

  /// Puts a batch back, quarantines it, or keeps it for a retry, by the disposition of its error.
  private func dispose(_ claim: Claim, after error: any Error, about: Logger.Metadata) -> Outcome {
    do {
      if queue.hasLost(claim) {
        logger.notice("batch.lost", metadata: about.merging(["reason": "another worker has taken it over"]) { $1 })
        return .gone
      }
      let disposition =
        error is BatchTimeout
        ? .unknown(BadBatch("encode", claim.name, "\(error)", advice: "give it more --max-time, or split the batch"))
        : Disposition(of: error, batch: claim.name)
      switch disposition {
      case .retry: return failed(.held(claim), error, about: about)
      case .unknown where claim.failures + 1 < Claim.unknownFailures:
        let failed = try queue.fail(claim)
        let failure = UnknownFailure(batch: claim.name, count: failed.failures, error: error)
        return .failed(.held(failed), failure, about: about)
      case .handBack:
        try queue.handBack(claim)
        logger.info("batch.returned", metadata: about)
        return .handedBack
      case .quarantine(let reason), .unknown(let reason):
        let name = try queue.quarantine(claim, reason)
        counters.add { $0.quarantined += 1 }
        // The batch's name in quarantine.
        let found: Logger.Metadata = ["batch": "\(name)", "reason": "\(reason)", "advice": "\(reason.advice)"]
        logger.warning("batch.quarantined", metadata: about.merging(found) { $1 })
        return .quarantined
      }
    } catch {
      return queue.hasLost(claim) ? .gone : failed(.held(claim), error, about: about)
    }
  }

  private func failed(_ item: WorkItem, _ error: any Error, about: Logger.Metadata) -> Outcome {
    meter.noteFailure()
    return .failed(item, queue.isCutOff || store.staging.isCutOff ? WorkerEvicted() : error, about: about)
  }

  private func report(_ receipt: Receipt) {
    counters.add { counters in
      counters.published += receipt.duplicate ? 0 : 1
      counters.duplicates += receipt.duplicate ? 1 : 0
      counters.segments += receipt.duplicate ? 0 : receipt.segments
      counters.frames += receipt.duplicate ? 0 : receipt.frames
      counters.refused += receipt.refused.count
    }
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
