// The work on one batch, and the handling of its errors. Runs on the encoding threads.

import Encoding
import FileSystem
import FrameBatches
import Logging
import Notifying
import Sessions
import Synchronization
import WorkQueues

package final class Worker: Sendable {
  enum Outcome {
    /// Published or quarantined; it may still wait for the delivery of its event.
    case done
    /// Put back, or another worker has it.
    case released
    /// The environment failed; the batch is still claimed if possible.
    case failed(WorkItem, any Error, about: Logger.Metadata)
  }

  package let queue: any BatchQueue
  package let store: any WorkerStore
  package let logger: Logger
  package let meter: WorkerMeter
  package let jobs: JobWatch
  /// See ``WorkerReports/write``.
  let write: (@Sendable (any Event) -> Void)?
  /// See ``WorkerReports/notifier``.
  package let notifier: EventNotifier<EventSubject>?
  let ends: SessionEnder
  let options: BatchEncoder.Options
  /// Nil if nobody asks for frozen screens.
  package let screens: FrozenScreens?
  let texts: TextPasses?
  /// Brings sessions into a store; nil if they stay here.
  package let uploads: UploadPasses?
  /// Makes files of sessions that have ended; nil for none.
  package let exports: ExportPasses?
  /// Compacts sessions; nil to leave them as they are.
  let compaction: SessionPasses?
  private let rules: WorkerRules
  private let keyFrames = KeyFrameCache()
  private let recent = Mutex(RecentDurations())
  /// One for each thread.
  private let encoders = Mutex<[BatchEncoder]>([])

  /// Throws ``LowDiskSpace`` if there is too little room for a new batch.
  func requireRoom() throws { try rules.freeSpace.require(at: store.staging.output) }

  /// - Parameters:
  ///   - texts: reads the words in what is published; nil if nobody asks for them.
  ///   - uploads: brings sessions into a store; nil if they stay here.
  ///   - exports: makes files of sessions that have ended; nil for none.
  ///   - compaction: compacts sessions; nil to leave them as they are.
  package init(
    _ id: WorkerID, queue: any BatchQueue, store: any WorkerStore, options: BatchEncoder.Options,
    _ rules: WorkerRules = WorkerRules(), texts: TextPasses? = nil, uploads: UploadPasses? = nil,
    exports: ExportPasses? = nil, compaction: SessionPasses? = nil, reports: WorkerReports
  ) {
    self.queue = queue
    self.store = store
    var options = options
    options.watchesScreen = rules.frozenAfterMs != nil
    self.options = options
    self.rules = rules
    screens = rules.frozenAfterMs.map { FrozenScreens(afterMs: $0) }
    (self.texts, self.uploads, self.exports, self.compaction) = (texts, uploads, exports, compaction)
    (write, notifier) = (reports.write, reports.notifier)
    var own = reports.logger
    own[metadataKey: "worker"] = "\(id)"
    logger = own
    ends = SessionEnder(store, queue, quietMs: rules.endAfterMs, own)
    meter = WorkerMeter(continuing: reports.counters, reports.metrics)
    jobs = JobWatch(maxTime: rules.maxTimeS)
  }

  /// Makes an encoder for one thread.
  func makeEncoder() -> BatchEncoder {
    let encoder = BatchEncoder(options, publishingTo: store, keyFrames: keyFrames)
    encoders.withLock { $0.append(encoder) }
    return encoder
  }

  /// Frees the pictures of encoders and decoders that have been idle for some seconds. Call it every few seconds.
  func forgetIdlePictures() {
    for encoder in encoders.withLock({ $0 }) { encoder.forgetIdleFrame() }
    options.decoders?.endIdle()
  }

  package var counters: WorkerCounters { meter.now.counters }

  /// Takes one batch through its steps: claim, fetch, read, publish, announce, retire. The error of a step decides where it goes.
  func perform(_ item: WorkItem, with encoder: BatchEncoder, stop: Cancellation) -> Outcome {
    TracedStep.batch.runInSpan { steps(of: item, with: encoder, in: $0, stop: stop) }
  }

  private func steps(
    of item: WorkItem, with encoder: BatchEncoder, in span: StepSpan, stop: Cancellation
  ) -> Outcome {
    let claimed: Claim?
    do {
      claimed = try TracedStep.claim.run { try claim(item) }
    } catch {
      return item.claim.map(queue.hasLost) == true
        ? .released : failed(item, error, about: ["batch": "\(item.batch ?? "the next one")"])
    }
    guard var claim = claimed else { return .released }
    ends.forget(batch: claim.name)
    jobs.begin(claim.name, encoder.stage)
    defer { jobs.end(encoder.stage) }
    var facts = BatchFacts(of: claim, options.input)
    defer { span.note(facts) }
    let ends = stop.or(afterMs: 1_000 * rules.maxTimeS).or { [queue, claim] in queue.hasLost(claim) }
    do {
      switch try facts.stages.measure(.fetch, { try queue.fetch(claim) }) {
      case .alreadyFinished(let how): return skip(facts, how)
      case .batch(let fetched):
        claim = fetched.claim
        facts.note(claim.traceParent)
        let receipts = try publish(fetched, with: encoder, &facts, in: span, cancellation: ends)
        span.note(receipts)
        return try conclude(FinishedBatch(claim: claim, ending: ending(of: claim, facts, with: receipts), facts: facts))
      }
    } catch {
      let isLate = error is Cancelled && !stop.isRequested
      let failure: any Error = isLate ? BatchTimeout(seconds: rules.maxTimeS) : error
      span.fail(failure)
      return dispose(claim, after: failure, facts)
    }
  }

  /// Claims a batch, or begins another attempt of one that is claimed.
  ///
  /// - Returns: nil if another worker has it, or the events of finished batches leave no room for another.
  private func claim(_ item: WorkItem) throws -> Claim? {
    // Checked before each batch: other processes fill the disk, too.
    if item.isFirstAttempt { try requireRoom() }
    let claim: Claim? =
      switch item {
      case .held(let held): held
      case .recovered(let held): try queue.begin(held)
      case .waiting(let entry): notifier?.isFull == true ? nil : try queue.claim(entry)
      }
    if let claim { logger.debug("batch.claimed", metadata: claim.counts) }
    return claim
  }

  /// Leaves a batch that an earlier worker has finished.
  private func skip(_ facts: BatchFacts, _ how: FinishedEarlier) -> Outcome {
    switch how {
    case .published: return .released
    case .quarantined:
      meter.add { $0.counters.quarantined += 1 }
      let found: Logger.Metadata = ["reason": "it had been quarantined"]
      logger.warning("batch.quarantined", metadata: facts.about.merging(found) { $1 })
      return .done
    case .gone:
      let found: Logger.Metadata = [
        "reason": "the store has no such batch: a worker has finished it, or its producer has not written it yet"
      ]
      logger.warning("batch.gone", metadata: facts.about.merging(found) { $1 })
      return .released
    }
  }

  /// Returns a receipt for each session that was deleted.
  private func refusals(of claim: Claim, _ facts: BatchFacts) throws -> [Receipt] {
    try facts.sessions.compactMap { try store.tombstone(of: $0) }
      .map { Receipt(refusing: claim.name, for: SessionDeleted($0)) }
  }

  /// Returns how a batch ends that cannot be encoded. One with a deleted session is refused: in quarantine its pictures would
  /// stay.
  private func ending(of claim: Claim, _ facts: BatchFacts, after reason: BadBatch) throws -> FinishedBatch.Ending {
    let refusals = try refusals(of: claim, facts)
    return refusals.isEmpty ? .quarantine(reason) : .retire(refusals, tookMs: facts.ageMs)
  }

  /// Returns how a batch ends that is published. One with a session that was refused keeps its pictures.
  private func ending(of claim: Claim, _ facts: BatchFacts, with receipts: [Receipt]) throws -> FinishedBatch.Ending {
    let refused = receipts.flatMap(\.refusedSessions)
    if refused.isEmpty { return .retire(receipts, tookMs: facts.ageMs) }
    report(receipts, facts)
    return try ending(of: claim, facts, after: BadBatch(refused, published: receipts.count))
  }

  /// Logs what is published, and hands it to those who read its words.
  private func report(_ receipts: [Receipt], _ facts: BatchFacts) {
    for receipt in receipts {
      log(receipt, facts)
      if receipt.refusal == nil { texts?.add(receipt.session, fromMs: receipt.startMs) }
      if let change = screens?.add(receipt) { report(change, facts) }
    }
  }

  /// Logs that a screen is frozen, or has changed again, and sends the event of the first.
  private func report(_ change: FrozenScreens.Change, _ facts: BatchFacts) {
    let screen = change.screen
    let found: Logger.Metadata = [
      "session": "\(screen.session)", "sinceMs": .stringConvertible(screen.sinceMs),
      "untilMs": .stringConvertible(screen.untilMs), "blank": .stringConvertible(screen.isBlank),
    ]
    guard case .frozen = change else {
      return logger.info("session.unfrozen", metadata: facts.about.merging(found) { $1 })
    }
    logger.warning("session.frozen", metadata: facts.about.merging(found) { $1 })
    let event = SessionEvent(
      frozen: screen.session, sinceMs: screen.sinceMs, untilMs: screen.untilMs, isBlank: screen.isBlank)
    write?(event)
    notifier?.add(.notice, event)
  }

  /// Notes that an event that nothing waits for is delivered, or refused by its receiver. For any thread.
  func finishNotice(keeping refused: RefusedNotification?) {
    do {
      if let refused { try queue.notifications.add(refused) }
    } catch {
      logger.error("notification.lost", metadata: ["error": "\(error)"])
    }
  }

  /// Reads a batch and publishes its sessions. If too many workers have died with it, it only looks whether they are published.
  private func publish(
    _ fetched: FetchedBatch, with encoder: BatchEncoder, _ facts: inout BatchFacts, in span: StepSpan,
    cancellation: Cancellation
  ) throws -> [Receipt] {
    let profile = Profile(sumsFor: options.profile)
    defer {
      facts.stages.add(profile)
      facts.stages.tookMs = facts.ageMs
      fetched.discard()
      span.link(to: facts.traceParent)
      facts.step = span.traceParent
    }
    let claim = fetched.claim
    // After more deaths than this, workers also died while they only looked.
    guard claim.attempt <= 2 * Claim.attempts else { throw BadBatch(fatal: claim) }
    let batch = try read(fetched, with: encoder, profile, &facts, cancellation: cancellation)
    let receipts =
      try claim.attempt <= Claim.attempts
      ? encoder.publish(batch, isAccepted: queue.isAccepted, cancellation: cancellation)
      : encoder.rollBack(batch, isAccepted: queue.isAccepted, cancellation: cancellation)
    let isWhole = receipts.count + receipts.reduce(0) { $0 + $1.refusedSessions.count } >= batch.sessions.count
    if receipts.isEmpty || claim.attempt > Claim.attempts && !isWhole { throw BadBatch(fatal: claim) }
    return receipts
  }

  /// Reads a batch, and notes its sessions: also of one that cannot be read, if a session may have been deleted.
  private func read(
    _ fetched: FetchedBatch, with encoder: BatchEncoder, _ profile: Profile, _ facts: inout BatchFacts,
    cancellation: Cancellation
  ) throws -> BatchEncoder.ReadBatch {
    let name = fetched.claim.name
    do {
      var batch = try TracedStep.read.run {
        try encoder.read(fetched.path, named: name, profile: profile, cancellation: cancellation)
      }
      if let step = fetched.claim.traceParent { batch.continueTrace(of: step) }
      facts.note(batch)
      ends.note(name, of: batch.allSessions)
      return batch
    } catch let bad as BadBatch {
      if try store.hasTombstones() {
        facts.sessions = try encoder.sessions(namedIn: fetched.path, named: name, cancellation: cancellation)
      }
      throw bad
    }
  }

  /// Puts a batch back, quarantines it, or keeps it for a retry, by the disposition of its error.
  private func dispose(_ claim: Claim, after error: any Error, _ facts: BatchFacts) -> Outcome {
    let about = facts.about
    do {
      if queue.hasLost(claim) {
        ends.forget(batch: claim.name)
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
        ends.forget(batch: claim.name)
        try queue.handBack(claim)
        logger.info("batch.returned", metadata: about)
        return .released
      case .quarantine(let reason), .unknown(let reason):
        return try conclude(
          FinishedBatch(claim: claim, ending: ending(of: claim, facts, after: reason), facts: facts))
      }
    } catch {
      return queue.hasLost(claim) ? .released : failed(.held(claim), error, about: about)
    }
  }

  /// Whether anybody gets the event of a batch.
  private var isAnnounced: Bool { write != nil || notifier != nil || queue.takesEvents }

  /// Announces a finished batch, then ends it. With a receiver of events, ``finish(_:keeping:)`` ends it after the delivery.
  private func conclude(_ batch: FinishedBatch) throws -> Outcome {
    var batch = batch
    if isAnnounced {
      let event = batch.event
      try TracedStep.notify.run {
        write?(event)
        if queue.takesEvents { try queue.announce(batch.claim, key: event.key, event: event.line) }
      }
      if let notifier {
        if batch.isBlameless { batch.claim = try queue.forgive(batch.claim) }
        notifier.add(.batch(batch), event)
        return .done
      }
    }
    try end(batch)
    return .done
  }

  /// Ends a batch whose event is delivered, or refused by its receiver. For any thread.
  func finish(_ batch: FinishedBatch, keeping refused: RefusedNotification?) -> Outcome {
    do {
      if let refused { try queue.notifications.add(refused) }
      try end(batch)
      return .done
    } catch {
      return dispose(batch.claim, after: error, batch.facts)
    }
  }

  /// Retires a batch, or moves it to quarantine. A batch with a session that was deleted, perhaps while the event was on its
  /// way, is not kept.
  private func end(_ batch: FinishedBatch) throws {
    let ending: FinishedBatch.Ending =
      switch batch.ending {
      case .retire: batch.ending
      case .quarantine(let reason): try self.ending(of: batch.claim, batch.facts, after: reason)
      }
    ends.forget(batch: batch.claim.name)
    switch ending {
    case .retire(let receipts, let tookMs):
      let keep = try rules.keepsBatches && refusals(of: batch.claim, batch.facts).isEmpty
      try queue.retire(batch.claim, receipts, keep: keep)
      if batch.facts.isFinal { ends.expect() }
      var facts = batch.facts
      if isAnnounced { facts.stages.add(.notify, ns: 1_000_000 * Int64(MonotonicClock.milliseconds() - batch.endedAt)) }
      meter.add(
        receipts, tookMs: tookMs, facts.stages, arrivedMs: facts.arrivedMs, publishedMs: batch.endedMs)
      report(receipts, facts)
      warn(of: facts, tookMs: tookMs)
    case .quarantine(let reason):
      let name = try queue.quarantine(batch.claim, reason)
      meter.add { $0.counters.quarantined += 1 }
      // The batch's name in quarantine.
      let advice = reason.advice(ofQuarantined: name, in: queue)
      let found: Logger.Metadata = ["batch": "\(name)", "reason": "\(reason)", "advice": "\(advice)"]
      logger.warning("batch.quarantined", metadata: batch.facts.about.merging(found) { $1 })
    }
  }

  /// Warns of a batch that took much longer than those before, and names the stage that took longest.
  private func warn(of facts: BatchFacts, tookMs: Int) {
    guard let medianMs = recent.withLock({ $0.add(tookMs) }), let longest = facts.stages.longest else { return }
    let found: Logger.Metadata = [
      "tookMs": .stringConvertible(tookMs), "medianMs": .stringConvertible(medianMs),
      "stage": "\(longest.stage.rawValue)", "stageMs": .stringConvertible(longest.ms),
    ]
    logger.warning("batch.slow", metadata: facts.about.merging(found) { $1 })
  }

  private func failed(_ item: WorkItem, _ error: any Error, about: Logger.Metadata) -> Outcome {
    meter.add { $0.failures += 1 }
    let isEvicted = queue.fault == .workerEvicted || store.staging.isCutOff
    return .failed(item, isEvicted ? WorkerEvicted() : error, about: about)
  }
}
