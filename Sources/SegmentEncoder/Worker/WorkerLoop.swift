// The loop of a worker: take over claims, watch the queue, hand out batches, stop. The loop's thread waits for new batches, a stop
// request and finished batches; the encoding threads do the work.

import FileSystem
import Glibc
import Logging
import Synchronization
import WorkQueues

/// Encodes the batches of a queue on several threads. For one run.
package final class WorkerLoop: Sendable {
  /// The progress of a worker: finished batches, the finished parts of those in work, all known batches, and quarantined ones.
  package typealias Progress = (done: Int, partly: Double, owed: Int, quarantined: Int)

  /// The result of a worker's run.
  package struct End {
    /// The first failure of the environment.
    package let failure: (any Error)?
    /// Whether that failure ended the worker.
    package let isFatal: Bool
    /// Whether the queue has lost its data.
    package let queueHasForgotten: Bool
    /// The number of batches that workers of other hosts hold; counted at the end of a drain only.
    package let heldElsewhere: Int
  }

  let worker: Worker
  private let threads: Int
  private let drains: Bool
  private let shutdown: ShutdownState
  private let queue = WorkQueue<Worker.WorkItem>(isExclusive: \.runsAlone)
  private let retries: RetryScheduler
  private let isShort = Atomic(false)

  /// Seconds between scans for claims abandoned by dead workers.
  private static let rescan = 5

  /// - Parameters:
  ///   - threads: the number of batches in parallel.
  ///   - drains: whether to end when the queue is empty.
  package init(_ worker: Worker, threads: Int, drains: Bool, shutdown: ShutdownState) {
    self.worker = worker
    self.threads = threads
    self.drains = drains
    self.shutdown = shutdown
    retries = RetryScheduler(drains: drains)
  }

  /// The reason why no new batch is begun; nil when all is well.
  package var trouble: String? {
    if shutdown.isStopping { return "stopping" }
    if isShort.load(ordering: .relaxed) { return "too little free space in the output" }
    if let trouble = retries.trouble { return "\(trouble)" }
    return worker.jobs.stuck.count >= threads ? "every batch in work is stuck" : nil
  }

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
    let watch = worker.queue.watch()
    if watch < 0 {
      worker.logger.info("queue.polling", metadata: ["everyMs": .stringConvertible(worker.queue.pollIntervalMs)])
    }
    defer { if watch >= 0 { close(watch) } }

    try worker.jobs.start(isStopping: { [shutdown] in shutdown.isStopping }, onStuck)
    defer { worker.jobs.stop() }
    let group = ThreadGroup()
    for _ in 0..<threads { try group.start { [self] in encode() } }
    var takeOverAt = 0
    var queueUnavailable = false
    var rate = ThroughputReporter()
    while !retries.shouldAbort && !shutdown.isStopping {
      shutdown.beat()
      do {
        if MonotonicClock.seconds() >= takeOverAt {
          takeOverAt = MonotonicClock.seconds() + Self.rescan
          try takeOver()
        }
        queue.offer(retries.due())
        if queue.isEmpty, try hasRoom() {
          let deferredNames = retries.deferredNames
          queue.offer(
            try worker.queue.waiting().filter { !deferredNames.contains($0.name ?? "") }.map(Worker.WorkItem.waiting))
          // Dead workers may have held more batches than one scan takes over.
          if drains && queue.isIdle && !retries.isAwaiting, try !takeOver() { break }
        }
        if queueUnavailable {
          queueUnavailable = false
          if retries.succeed() { worker.logger.warning("queue.recovered") }
        }
      } catch let failure as LowDiskSpace {
        retries.note(failure)
        break
      } catch {
        queueUnavailable = true
        worker.meter.noteFailure()
        worker.logger.error(
          "queue.failed", metadata: ["error": "\(error)", "retryInS": .stringConvertible(Self.rescan)])
        retries.note(error, isSystemWide: true)
      }
      flushPending()
      worker.endIdleDecoders()
      show?(progress)
      rate.show(worker)
      let pollIntervalMs =
        queueUnavailable
        ? Self.rescan * 1_000 : min(worker.queue.pollIntervalMs, retries.isAwaiting || show != nil ? 1_000 : .max)
      shutdown.wait(ms: worker.pollIntervalMs(atMost: pollIntervalMs), watch)
    }
    finish(group)
    return End(
      failure: retries.fatal ?? retries.first, isFatal: retries.fatal != nil,
      queueHasForgotten: worker.queue.lostState, heldElsewhere: drains ? (try? worker.queue.heldElsewhere()) ?? 0 : 0
    )
  }

  /// Takes over the claims of dead workers.
  ///
  /// - Returns: whether there were any.
  @discardableResult
  private func takeOver() throws -> Bool {
    let takeOver = try worker.queue.takeOver()
    queue.offer(takeOver.claims.map(Worker.WorkItem.recovered))
    for claim in takeOver.claims {
      worker.meter.noteTakeover()
      worker.logger.warning(
        "batch.recovered",
        metadata: ["batch": "\(claim.name)", "attempt": .stringConvertible(claim.attempt + 1)])
    }
    for failure in takeOver.failures {
      worker.logger.error("recovery.failed", metadata: ["error": "\(failure)"])
      retries.note(failure)
    }
    return !takeOver.claims.isEmpty
  }

  /// Counts known batches; more may come, and other workers may take some.
  private var progress: Progress {
    let (done, owed) = queue.counts
    return (done, worker.jobs.fractions, done + owed + retries.count, worker.counters.now.quarantined)
  }

  /// Whether there is disk space for new batches. Logs each change once.
  private func hasRoom() throws -> Bool {
    do {
      try worker.requireRoom()
      if isShort.exchange(false, ordering: .relaxed) { worker.logger.notice("disk.recovered") }
      return true
    } catch let failure as LowDiskSpace {
      if !isShort.exchange(true, ordering: .relaxed) {
        worker.logger.error("disk.low", metadata: ["error": "\(failure)"])
      }
      // A drain does not wait for a cleanup.
      if drains && queue.isIdle { throw failure }
      return false
    }
  }

  /// Waits for the batches in work; after a stop request they have some seconds.
  private func finish(_ group: ThreadGroup) {
    queue.close()
    while queue.activeCount > 0 {
      flushPending()
      shutdown.beat()
      shutdown.wait(ms: worker.pollIntervalMs(atMost: Self.rescan * 1_000))
    }
    group.join()
    let held = queue.remaining().compactMap(\.claim) + retries.held
    for claim in held {
      let about: Logger.Metadata = ["batch": "\(claim.name)"]
      do {
        try worker.queue.handBack(claim)
        worker.logger.info("batch.returned", metadata: about)
      } catch {
        worker.logger.warning("batch.abandoned", metadata: about.merging(["error": "\(error)"]) { $1 })
      }
    }
    flushPending(all: true)
    worker.leave()
  }

  /// Updates the views of sessions. A failed update is left for later, or for the next worker.
  private func flushPending(all: Bool = false) {
    for outdated in worker.flushPending(all: all) {
      worker.logger.error(
        "session.outdated", metadata: ["session": "\(outdated.session)", "error": "\(outdated.error)"])
      // An update that fails here may still succeed later; and a stop is no failure.
      if all && outdated.isOurs && !(outdated.error is Cancelled) {
        retries.note(outdated.error, isSystemWide: false)
      }
    }
  }

  /// An encoding thread.
  private func encode() {
    let encoder = worker.makeEncoder()
    while let item = queue.next() {
      var isDone = false
      switch worker.perform(item, with: encoder, isCancelled: { self.shutdown.isOverdue }) {
      case .published, .quarantined:
        isDone = true
        if retries.succeed() { worker.logger.warning("environment.recovered") }
      case .handedBack, .gone: break
      case .failed(let item, let error, let about):
        let pause = retries.note(error, item)
        let isLast = retries.fatal != nil
        var facts = about.merging(["error": "\(error)"]) { $1 }
        if let pause, !isLast { facts["retryInS"] = .stringConvertible(pause) }
        worker.logger.error("batch.failed", metadata: facts)
        if let pause, !isLast { queue.pause(seconds: pause) }
      }
      queue.finished(isDone: isDone)
      shutdown.wake()
    }
  }
}
