// The life of a worker: rescue, watch, hand out, stop. The main thread waits for new batches, signals and the end of
// work; the encoding threads do the rest.

import ArgumentParser
import CLinux
import FileSystem
import Glibc
import Logging
import SegmentEncoder
import Synchronization
import WorkQueues

struct WorkerLoop {
  let worker: Worker
  let threads: Int
  /// Whether to end when nothing is left.
  let drains: Bool
  let pulse: WorkerPulse
  /// Where to say how it goes, and under which names.
  let listening: (socket: ListeningSocket, hosts: [String])?

  /// What a dead worker held is found this often, in seconds.
  private static let rescan = 5

  /// - Returns: nil when all went well.
  func run() throws -> ExitCode? {
    let shared = Shared(drains: drains, pulse)
    let signals = pulse.signals
    let watch = worker.queue.watch()
    if watch < 0 { worker.logger.info("looking for batches every \(worker.queue.restMs) ms") }
    defer { if watch >= 0 { close(watch) } }

    try worker.jobs.start(worker.tally, isStopping: { pulse.isStopping })
    let group = ThreadGroup()
    for _ in 0..<threads {
      try group.start { [worker, wake = signals.wake] in Self.encode(for: worker, shared, wake: wake) }
    }
    let site = WorkerSite(worker, pulse, threads: threads, trouble: { shared.trouble })
    let server = try listening.map { try HTTPServer(on: $0.socket, hosts: $0.hosts) { site.answer($0) } }
    if let server { say("listening at http://\(server.address.description)/") }
    defer { withExtendedLifetime(server) {} }
    var progress = Progress(isShown: drains)
    var rescueAt = 0
    var isBlind = false
    var rate = RateMeter()
    while !shared.setbacks.isHopeless {
      pulse.beat()
      do {
        if MonotonicClock.seconds() >= rescueAt {
          rescueAt = MonotonicClock.seconds() + Self.rescan
          try rescue(shared)
        }
        shared.queue.offer(shared.setbacks.due())
        if shared.queue.isEmpty, try hasRoom(shared) {
          let avoided = shared.setbacks.avoided
          shared.queue.offer(
            try worker.queue.waiting().filter { !avoided.contains($0.name ?? "") }.map(Worker.Errand.waiting))
          // What a dead worker held may have been more than is taken over at once.
          if drains && shared.queue.isIdle && !shared.setbacks.isAwaiting, try !rescue(shared) { break }
        }
        if isBlind {
          isBlind = false
          if shared.setbacks.succeed() { worker.logger.warning("the queue is there again: going on") }
        }
      } catch let failure as ShortOfSpace {
        shared.setbacks.note(failure)
        break
      } catch {
        isBlind = true
        worker.meter.noteFailure()
        worker.logger.error("\(error); looking again in \(Self.rescan) s")
        shared.setbacks.note(error, concernsAll: true)
      }
      catchUp(shared)
      worker.endIdleDecoders()
      show(&progress, shared)
      rate.show(worker)
      let restMs =
        isBlind
        ? Self.rescan * 1_000 : min(worker.queue.restMs, shared.setbacks.isAwaiting || progress.isShown ? 1_000 : .max)
      if signals.wait(ms: worker.restMs(atMost: restMs), watch) { pulse.noteSignal() }
      if pulse.isStopping { break }
    }
    progress.finish()
    finish(shared, group)
    return conclusion(shared)
  }

  /// Takes over what dead workers held.
  ///
  /// - Returns: whether there was anything.
  @discardableResult
  private func rescue(_ shared: Shared) throws -> Bool {
    let rescue = try worker.queue.rescue()
    shared.queue.offer(rescue.claims.map(Worker.Errand.suspect))
    for claim in rescue.claims {
      worker.meter.noteRescue()
      worker.logger.warning(
        "took over \(claim.name) from a dead worker: attempt \(claim.attempt + 1) of \(Claim.attempts)",
        metadata: ["batch": "\(claim.name)", "attempt": .stringConvertible(claim.attempt + 1)])
    }
    for failure in rescue.failures {
      worker.logger.error("\(failure); left as it is")
      shared.setbacks.note(failure)
    }
    return !rescue.claims.isEmpty
  }

  /// Of what is known to be owed; more may come, and others may take of it.
  private func show(_ progress: inout Progress, _ shared: Shared) {
    let (done, owed) = shared.queue.counts
    let quarantined = worker.tally.now.quarantined
    let note = quarantined > 0 ? ", \(quarantined) in quarantine" : ""
    progress.show(done, of: done + owed + shared.setbacks.count, "batches", note: note)
  }

  /// Whether batches may be begun; what is said of it is said once.
  private func hasRoom(_ shared: Shared) throws -> Bool {
    do {
      try worker.requireRoom()
      if shared.isShort.exchange(false, ordering: .relaxed) { worker.logger.notice("room again: going on") }
      return true
    } catch let failure as ShortOfSpace {
      if !shared.isShort.exchange(true, ordering: .relaxed) { worker.logger.error("\(failure); waiting") }
      // A drain does not wait for somebody to tidy up.
      if drains && shared.queue.isIdle { throw failure }
      return false
    }
  }

  /// Waits for what is being encoded; a signal gives it some seconds, another one ends the process where it stands.
  private func finish(_ shared: Shared, _ group: ThreadGroup) {
    shared.queue.close()
    while shared.queue.activeCount > 0 {
      catchUp(shared)
      pulse.beat()
      if pulse.signals.wait(ms: worker.restMs(atMost: Self.rescan * 1_000)) { pulse.noteSignal() }
    }
    group.join()
    let held = shared.queue.remaining().compactMap(\.claim) + shared.setbacks.held
    for claim in held {
      let about: Logger.Metadata = ["batch": "\(claim.name)"]
      do {
        try worker.queue.handBack(claim)
        worker.logger.info("put back", metadata: about)
      } catch {
        worker.logger.warning("\(error); left to the next worker", metadata: about)
      }
    }
    catchUp(shared, all: true)
    worker.leave()
  }

  /// Brings sessions' views up to date; one that cannot be is left to later, or to the next worker.
  private func catchUp(_ shared: Shared, all: Bool = false) {
    for laggard in worker.catchUp(all: all) {
      worker.logger.error(
        "session \(laggard.session): \(laggard.error); its session.json is brought up to date later",
        metadata: ["session": "\(laggard.session)"])
      // What fails on the way may still succeed; and that we are told to end is no failure.
      if all && laggard.isOurs && !(laggard.error is Cancelled) {
        shared.setbacks.note(laggard.error, concernsAll: false)
      }
    }
  }

  /// What is said at the end, and the status.
  private func conclusion(_ shared: Shared) -> ExitCode? {
    guard drains || shared.setbacks.fatal != nil else { return nil }
    if drains { say(worker.tally.now.summary) }
    if let held = try? worker.queue.heldElsewhere(), held > 0 {
      say(
        "\(count(held, "batch is", "batches are")) held by workers of other hosts; one that runs on takes over from the dead"
      )
    }
    if worker.queue.hasForgotten {
      say("encoder-worker: the queue has lost what it knew; run reconcile, and then this again", .error)
      return ExitStatus.temporaryFailure
    }
    if let failure = shared.setbacks.fatal ?? shared.setbacks.first {
      say("encoder-worker: \(failure); nothing is lost, run it again when that is mended", .error)
      return ExitStatus.of(failure)
    }
    return worker.tally.now.quarantined > 0 && !shared.isStopping ? ExitStatus.badBatch : nil
  }

  /// What the threads share.
  private final class Shared: Sendable {
    let queue = WorkQueue<Worker.Errand>(isExclusive: \.isSuspect)
    let setbacks: Setbacks
    let isShort = Atomic(false)
    private let pulse: WorkerPulse

    init(drains: Bool, _ pulse: WorkerPulse) {
      setbacks = Setbacks(drains: drains)
      self.pulse = pulse
    }

    /// Why no new batch is begun; nil when all is well.
    var trouble: String? {
      if isStopping { return "stopping" }
      if isShort.load(ordering: .relaxed) { return "too little room in the output" }
      return setbacks.trouble.map { "\($0)" }
    }

    var isStopping: Bool { pulse.isStopping }
    var isOverdue: Bool { pulse.isOverdue }
  }

  /// An encoding thread.
  private static func encode(for worker: Worker, _ shared: Shared, wake: () -> Void) {
    let encoder = worker.makeEncoder()
    while let errand = shared.queue.next() {
      var isDone = false
      switch worker.perform(errand, with: encoder, isCancelled: { shared.isOverdue }) {
      case .published, .quarantined:
        isDone = true
        if shared.setbacks.succeed() { worker.logger.warning("the machine is well again: going on") }
      case .handedBack, .gone: break
      case .failed(let errand, let error, let about):
        let pause = shared.setbacks.note(error, errand)
        let isLast = shared.setbacks.fatal != nil
        worker.logger.error(
          "\(error); nothing is lost\(isLast ? "" : pause.map { ", going on in \($0) s" } ?? "")", metadata: about)
        if let pause, !isLast { shared.queue.pause(seconds: pause) }
      }
      shared.queue.finished(isDone: isDone)
      wake()
    }
  }
}
