// The loop of a worker: take over claims, watch the queue, hand out batches, stop. The loop's thread waits for new
// batches, a stop request and finished batches; the encoding threads do the work.

import FileSystem
import Glibc
import Logging
import Notifying
import Sessions
import Synchronization
import WorkQueues

/// Encodes the batches of a queue on several threads. For one run.
package final class WorkerLoop: Sendable {
  /// The finished batches, the finished parts of those in work, all known batches, and the quarantined ones.
  package typealias Progress = (done: Int, partly: Double, owed: Int, quarantined: Int)

  /// The result of a worker's run.
  package struct End {
    /// The first failure of the environment.
    package let failure: (any Error)?
    /// Whether that failure ended the worker.
    package let isFatal: Bool
    package let queueHasLostData: Bool
    /// The number of batches that workers of other hosts hold, after a drain.
    package let heldElsewhere: Int
  }

  let worker: Worker
  private let threads: Int
  private let drains: Bool
  private let shutdown: ShutdownState
  private let pool = ThreadPool<Worker.WorkItem>(isExclusive: \.runsAlone)
  private let retries: RetryScheduler
  /// Removes old segments; nil to keep all.
  private let retention: SessionPasses?
  private let isDiskSpaceLow = Atomic(false)
  private let isWaitingForReceiver = Atomic(false)
  private let isQueueMiscounting = Atomic(false)
  /// Whether the drain has ended the sessions that its last pass of retention removes.
  private let hasEndedSessions = Atomic(false)

  /// Seconds between scans for claims abandoned by dead workers.
  private static let rescan = 5
  /// Claims in a row without a batch after which a queue that counts waiting batches is reported: other workers may be
  /// faster some times.
  private static let reportedEmptyClaims = 5

  /// - Parameters:
  ///   - threads: the number of batches in parallel.
  ///   - drains: whether to end when the queue is empty.
  ///   - retention: removes old segments; nil to keep all.
  package init(
    _ worker: Worker, threads: Int, drains: Bool, shutdown: ShutdownState, retention: SessionPasses? = nil
  ) {
    self.worker = worker
    self.threads = threads
    self.drains = drains
    self.shutdown = shutdown
    self.retention = retention
    retries = RetryScheduler(drains: drains)
  }

  /// The reason why no new batch is begun; nil when all is well.
  package var trouble: String? {
    if shutdown.isStopping { return "stopping" }
    if isDiskSpaceLow.load(ordering: .relaxed) { return "too little free space in the output" }
    if let trouble = retries.fatal ?? retries.trouble { return "\(trouble)" }
    if let trouble = notifier?.trouble { return trouble }
    return worker.jobs.stuck.count >= threads ? "every batch in work is stuck" : nil
  }

  private var notifier: EventNotifier<EventSubject>? { worker.notifier }

  /// Runs on the caller's thread and `threads` others until a stop request, or until a drained queue is empty.
  ///
  /// - Parameters:
  ///   - onStuck: called on a thread of its own when a batch hangs. A hanging thread cannot be ended.
  ///   - show: called about once a second to show progress.
  /// - Throws: if a thread cannot be started.
  package func run(
    onStuck: @escaping @Sendable (JobWatch.Stuck) -> Void, show: ((Progress) -> Void)? = nil
  ) throws -> End {
    shutdown.beginLoop()
    let (watch, pollMs) = worker.queue.watch()
    if watch < 0 { worker.logger.info("queue.polling", metadata: ["everyMs": .stringConvertible(pollMs)]) }
    defer { if watch >= 0 { close(watch) } }
    let watchdog = try worker.jobs.start(isStopping: { [shutdown] in shutdown.isStopping }, onStuck)
    defer { watchdog.stop() }
    try startThreads()
    // A drain makes one pass before its end, and one at its end.
    let passes =
      drains
      ? []
      : try [retention, worker.compaction].compactMap { try $0?.start() }
        + [worker.uploads?.start(worker), worker.exports?.start(worker)].compactMap { $0 }
    defer { for thread in passes { thread.stop() } }
    try worker.texts?.start()

    var takeOverAt = 0
    var (isQueueFailing, givesUpEvents) = (false, false)
    var rate = ThroughputReporter()
    while !retries.shouldAbort && !shutdown.isStopping {
      shutdown.beat()
      do {
        if MonotonicClock.seconds() >= takeOverAt {
          takeOverAt = MonotonicClock.seconds() + Self.rescan
          try takeOver()
        }
        if try !handOut() { break }
        givesUpEvents = isRefusedByReceiver()
        if givesUpEvents { break }
        if isQueueFailing && retries.succeed() { worker.logger.warning("queue.recovered") }
        isQueueFailing = false
      } catch let failure as LowDiskSpace {
        retries.record(failure)
        break
      } catch {
        isQueueFailing = true
        recordFailure(ofQueue: error)
      }
      reportMiscount()
      flushPending()
      worker.endSessions()
      worker.forgetIdlePictures()
      show?(progress)
      rate.show(worker)
      let maximumMs =
        retries.isAwaiting || worker.ends.isWaiting || show != nil || drains && !isDelivered ? 1_000 : Int.max
      wait(ms: isQueueFailing ? Self.rescan * 1_000 : min(pollMs, maximumMs), watch)
    }
    for thread in passes { thread.stop() }
    finish(delivers: !givesUpEvents)
    return End(
      failure: retries.fatal ?? retries.first, isFatal: retries.fatal != nil,
      queueHasLostData: worker.queue.fault == .dataLost,
      heldElsewhere: drains ? (try? worker.queue.heldElsewhere()) ?? 0 : 0)
  }

  /// Starts the encoding threads, and the delivery of events.
  private func startThreads() throws {
    try pool.start(threads: threads, wake: shutdown.wake) { [self] in
      let encoder = worker.makeEncoder()
      return { [self] in perform($0, with: encoder) }
    }
    try notifier?.start(worker.logger, wake: shutdown.wake) { [self] subject, refused in
      switch subject {
      case .batch(let batch): _ = record(worker.finish(batch, keeping: refused))
      case .end(let end): worker.finish(end, keeping: refused)
      case .upload(let session): worker.finish(upload: session, keeping: refused)
      case .notice: worker.finishNotice(keeping: refused)
      }
    }
  }

  /// Hands out the retries that are due and, if no batch waits for a thread, new batches.
  ///
  /// - Returns: whether to go on; a drain ends when nothing is left.
  private func handOut() throws -> Bool {
    pool.offer(retries.due())
    guard pool.isEmpty, try hasRoom(), hasRoomForEvents(), !worker.queue.isPausing else { return true }
    let deferredNames = retries.deferredNames
    let entries = try worker.queue.waiting().filter { !deferredNames.contains($0.name ?? "") }
    pool.offer(entries.map(Worker.WorkItem.waiting))
    // The pool may be idle again: claims that brought nothing do not make the queue empty.
    guard drains && entries.isEmpty && pool.isIdle && isDelivered && !retries.isAwaiting else { return true }
    // Dead workers may have held more batches than one scan takes over.
    if try takeOver() || worker.endSessions(now: true) > 0 { return true }
    guard let retention, !hasEndedSessions.exchange(true, ordering: .relaxed) else { return false }
    retention.pass()
    return worker.endSessions(now: true) > 0
  }

  /// Whether a drain has nothing left but events that their receiver does not take.
  private func isRefusedByReceiver() -> Bool {
    guard drains, pool.isIdle, let failure = notifier?.surrender else { return false }
    retries.record(failure, isSystemWide: false)
    return true
  }

  /// Logs once that the queue counts batches that it does not give.
  private func reportMiscount() {
    let claims = worker.queue.emptyClaims
    let isMiscounting = claims >= Self.reportedEmptyClaims
    if !isQueueMiscounting.exchange(isMiscounting, ordering: .relaxed), isMiscounting {
      worker.logger.warning("queue.miscounted", metadata: ["emptyClaims": .stringConvertible(claims)])
    }
  }

  private func recordFailure(ofQueue error: any Error) {
    worker.meter.add { $0.failures += 1 }
    worker.logger.error(
      "queue.failed", metadata: ["error": "\(error)", "retryInS": .stringConvertible(Self.rescan)])
    retries.record(error, isSystemWide: true)
  }

  /// Waits for a stop request, a finished batch or the watch, and at most until an update of a session's views is due.
  private func wait(ms: Int, _ watch: Int32 = -1) {
    shutdown.wait(ms: worker.store.dueInMs.map { min(ms, max($0, 20)) } ?? ms, watch)
  }

  /// Takes over the claims of dead workers.
  ///
  /// - Returns: whether there were any.
  @discardableResult
  private func takeOver() throws -> Bool {
    let takeOver = try worker.queue.takeOver()
    pool.offer(takeOver.claims.map(Worker.WorkItem.recovered))
    for claim in takeOver.claims {
      worker.meter.add { $0.takeovers += 1 }
      worker.logger.warning(
        "batch.recovered",
        metadata: ["batch": "\(claim.name)", "attempt": .stringConvertible(claim.attempt + 1)])
    }
    for failure in takeOver.failures {
      worker.logger.error("recovery.failed", metadata: ["error": "\(failure)"])
      retries.record(failure)
    }
    return !takeOver.claims.isEmpty
  }

  /// The progress so far. More batches may come, and other workers may take some.
  private var progress: Progress {
    let (done, owed) = pool.counts
    return (done, worker.jobs.fractions, done + owed + retries.count, worker.counters.quarantined)
  }

  /// Whether there is disk space for new batches. Logs each change once.
  private func hasRoom() throws -> Bool {
    do {
      try worker.requireRoom()
      if isDiskSpaceLow.exchange(false, ordering: .relaxed) { worker.logger.notice("disk.recovered") }
      return true
    } catch let failure as LowDiskSpace {
      if !isDiskSpaceLow.exchange(true, ordering: .relaxed) {
        worker.logger.error("disk.low", metadata: ["error": "\(failure)"])
      }
      // A drain does not wait for a cleanup.
      if drains && pool.isIdle { throw failure }
      return false
    }
  }

  /// Whether all events are delivered.
  private var isDelivered: Bool { notifier?.isIdle ?? true }

  /// Whether more batches may wait for the delivery of their events. Logs each change once.
  private func hasRoomForEvents() -> Bool {
    let trouble = notifier?.trouble
    if isWaitingForReceiver.exchange(trouble != nil, ordering: .relaxed) != (trouble != nil) {
      if let trouble {
        worker.logger.error("notification.paused", metadata: ["reason": "\(trouble)"])
      } else {
        worker.logger.notice("notification.resumed")
      }
    }
    return trouble == nil
  }

  /// Waits for the batches in work; after a stop request they have some seconds.
  ///
  /// - Parameter delivers: whether to deliver the last events, as long as the receiver answers.
  private func finish(delivers: Bool) {
    pool.close()
    while pool.activeCount > 0 {
      flushPending()
      shutdown.beat()
      wait(ms: Self.rescan * 1_000)
    }
    pool.join()
    worker.texts?.finish(all: drains && !shutdown.isStopping)
    if drains { exportAll() }
    if drains { uploadAll() }
    if delivers { deliver() }
    // Ends whose events are delivered now have exports, too.
    if drains, exportAll(), delivers { deliver() }
    let undelivered: [Claim] =
      notifier?.stop().compactMap { subject in if case .batch(let batch) = subject { batch.claim } else { nil } } ?? []
    for claim in pool.remaining.compactMap(\.claim) + retries.held + undelivered {
      let about: Logger.Metadata = ["batch": "\(claim.name)"]
      do {
        try worker.queue.handBack(claim)
        worker.logger.info("batch.returned", metadata: about)
      } catch {
        worker.logger.warning("batch.abandoned", metadata: about.merging(["error": "\(error)"]) { $1 })
      }
    }
    // The event of a session that was uploaded is delivered: now the session may go here.
    if drains { uploadAll() }
    if drains && !shutdown.isStopping, let retention {
      // Views that are not written yet would add bytes after the pass.
      flushPending(all: true)
      retention.pass()
    }
    if drains && !shutdown.isStopping { worker.compaction?.pass() }
    flushPending(all: true)
    worker.queue.leave()
    worker.store.staging.remove()
  }

  /// Waits until the events are delivered, or cannot be.
  private func deliver() {
    while !isDelivered, notifier?.isFailing == false, retries.fatal == nil, shutdown.shouldContinue() { wait(ms: 100) }
  }

  /// Makes the files of sessions that have ended, at the end of a drain.
  ///
  /// - Returns: whether there were any to make.
  @discardableResult
  private func exportAll() -> Bool {
    guard let exports = worker.exports, exports.isOwing, !shutdown.isStopping else { return false }
    if let failure = exports.pass(worker, all: true) { retries.record(failure, isSystemWide: false) }
    return true
  }

  /// Brings into the store what is due, at the end of a drain.
  private func uploadAll() {
    guard let uploads = worker.uploads, !shutdown.isStopping else { return }
    flushPending(all: true)
    if let failure = uploads.pass(worker) { retries.record(failure, isSystemWide: false) }
  }

  /// Updates the views of sessions. This worker retries a failed update later, or the next worker does.
  ///
  /// - Parameter all: whether to update views that are not due, too.
  private func flushPending(all: Bool = false) {
    for outdated in worker.store.flushPending(all: all) {
      worker.logger.error(
        "session.outdated", metadata: ["session": "\(outdated.session)", "error": "\(outdated.error)"])
      // An update that fails before the end may still succeed later.
      if all && outdated.failsRun || Disposition.endsWorker(outdated.error) {
        retries.record(outdated.error, isSystemWide: false)
      }
    }
  }

  /// Works on one batch, on an encoding thread; returns whether the batch is done.
  private func perform(_ item: Worker.WorkItem, with encoder: BatchEncoder) -> Bool {
    record(worker.perform(item, with: encoder, stop: Cancellation { [shutdown] in shutdown.isOverdue }))
  }

  /// Records what became of a batch, and schedules a retry if it failed; returns whether the batch is done.
  private func record(_ outcome: Worker.Outcome) -> Bool {
    switch outcome {
    case .done:
      if retries.succeed() { worker.logger.warning("environment.recovered") }
      return true
    case .released: return false
    case .failed(let item, let error, let about):
      let pauseMs = retries.record(error, item)
      let isLast = retries.fatal != nil
      var facts = about.merging(["error": "\(error)"]) { $1 }
      if let pauseMs, !isLast { facts["retryInS"] = .stringConvertible((pauseMs + 999) / 1_000) }
      worker.logger.error("batch.failed", metadata: facts)
      if let pauseMs, !isLast { pool.pause(ms: pauseMs) }
      return false
    }
  }
}
