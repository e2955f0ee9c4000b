// The life of a worker: rescue, watch, hand out, stop. The main thread waits for new batches, signals and the end of
// work; the encoding threads do the rest.

import ArgumentParser
import CLinux
import Glibc
import SegmentEncoder
import Synchronization

struct WorkerLoop {
  let worker: Worker
  let threads: Int
  /// Whether to end when nothing is left.
  let drains: Bool

  /// How long what is being encoded may go on after a signal, in seconds; then it is handed back.
  private static let grace = 5
  /// Batches that no event announces (NFS, a dead worker's) are found this often, in seconds.
  private static let rescan = 5

  /// - Returns: nil when all went well.
  func run() throws -> ExitCode? {
    let shared = Shared(drains: drains)
    let signals = try check("signalfd", clinux_termination_descriptor())
    let watch = try watchIncoming()
    let wake = try check("eventfd", clinux_wake_descriptor())
    defer { for descriptor in [signals, watch, wake] where descriptor >= 0 { close(descriptor) } }

    let group = ThreadGroup()
    for _ in 0..<threads {
      try group.start { [worker, drains] in Self.encode(for: worker, shared, wake: wake, drains: drains) }
    }
    var progress = Progress(isShown: drains)
    var rescueAt = 0
    while !shared.hasGivenUp {
      do {
        if now() >= rescueAt {
          shared.queue.offer(try worker.desk.rescue().map(Worker.Errand.held))
          rescueAt = now() + Self.rescan
        }
        if shared.queue.isEmpty {
          shared.queue.offer(try worker.spool.waiting().map(Worker.Errand.waiting))
          if drains && shared.queue.isIdle { break }
        }
      } catch let error as DiskError {
        worker.logger.error("\(error); looking again in \(Self.rescan) s")
        shared.fail(error)
      }
      progress.show(worker.tally.now)
      if wait(for: signals, watch, wake) {
        stop(shared, signals: signals, wake: wake)
        break
      }
    }
    shared.queue.close()
    group.join()
    for case .held(let claim) in shared.queue.remaining() + shared.setAside { try? worker.desk.handBack(claim) }
    worker.leave()
    progress.finish()
    return conclusion(shared)
  }

  /// What is said at the end, and the status.
  private func conclusion(_ shared: Shared) -> ExitCode? {
    guard drains else { return nil }
    say(summary(worker.tally.now))
    if let failure = shared.failure {
      say("encoder-worker: \(failure); nothing is lost, run it again when that is mended")
      return ExitStatus.of(failure)
    }
    return worker.tally.now.quarantined > 0 && !shared.isStopping ? ExitStatus.badBatch : nil
  }

  /// What the threads share.
  private final class Shared: Sendable {
    private struct Failures {
      var first: (any Error)?
      var inARow = 0
      var setAside: [Worker.Errand] = []
    }

    let queue = WorkQueue<Worker.Errand>()
    private let drains: Bool
    /// When what is being encoded is handed back, in monotonic seconds.
    private let stopAt = Atomic<Int>(.max)
    private let failures = Mutex(Failures())

    init(drains: Bool) { self.drains = drains }

    func stop(in seconds: Int) { stopAt.store(now() + seconds, ordering: .relaxed) }

    var isStopping: Bool { stopAt.load(ordering: .relaxed) != .max }
    var isOverdue: Bool { isStopping && now() >= stopAt.load(ordering: .relaxed) }

    func succeed() { failures.withLock { $0.inARow = 0 } }

    /// - Parameter errand: set aside until the end.
    func fail(_ error: any Error, _ errand: Worker.Errand? = nil) {
      failures.withLock { failures in
        failures.first = failures.first ?? error
        failures.inARow += 1
        if let errand { failures.setAside.append(errand) }
      }
    }

    var failure: (any Error)? { failures.withLock { $0.first } }
    var setAside: [Worker.Errand] { failures.withLock { $0.setAside } }

    /// A drain goes on when one batch fails, but not when everything does.
    var hasGivenUp: Bool { drains && failures.withLock { $0.inARow >= 3 } }
  }

  /// An encoding thread.
  private static func encode(for worker: Worker, _ shared: Shared, wake: Int32, drains: Bool) {
    let encoder = worker.makeEncoder()
    var pause = 1
    while !shared.hasGivenUp, let errand = shared.queue.next() {
      switch worker.perform(errand, with: encoder, isCancelled: { shared.isOverdue }) {
      case .published, .quarantined, .handedBack, .gone:
        pause = 1
        shared.succeed()
        shared.queue.finished()
      case .failed(let errand, let error) where drains:
        worker.logger.error("\(error)")
        shared.fail(error, errand)
        shared.queue.finished()
      case .failed(let errand, let error):
        worker.logger.error("\(error); going on in \(pause) s, nothing is lost")
        shared.queue.finished(retrying: errand, after: pause)
        pause = min(2 * pause, 30)
      }
      if shared.queue.isIdle || drains { clinux_wake(wake) }
    }
    clinux_wake(wake)
  }

  /// After the first signal: until the threads are done, or a second signal ends the process where it stands.
  private func stop(_ shared: Shared, signals: Int32, wake: Int32) {
    shared.stop(in: Self.grace)
    shared.queue.close()
    while shared.queue.activeCount > 0 {
      if wait(for: signals, -1, wake) { _exit(0) }
    }
  }

  /// Waits for an event.
  ///
  /// - Returns: whether it is a signal.
  private func wait(for signals: Int32, _ watch: Int32, _ wake: Int32) -> Bool {
    var polled = [signals, watch, wake].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    poll(&polled, nfds_t(polled.count), Int32(Self.rescan) * 1_000)
    var sink = [UInt8](repeating: 0, count: 4_096)
    for item in polled.dropFirst() where item.revents != 0 { while read(item.fd, &sink, sink.count) > 0 {} }
    guard polled[0].revents != 0 else { return false }
    return read(signals, &sink, MemoryLayout<signalfd_siginfo>.size) > 0
  }

  /// Wakes up when something appears in `incoming/`; -1 where the system has no watches left.
  private func watchIncoming() throws -> Int32 {
    let watch = inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK))
    let events = UInt32(IN_MOVED_TO | IN_CREATE | IN_CLOSE_WRITE)
    if watch >= 0 && inotify_add_watch(watch, worker.spool.incoming, events) >= 0 { return watch }
    worker.logger.notice("no inotify: looking for batches every \(Self.rescan) s")
    if watch >= 0 { close(watch) }
    return -1
  }

  private func summary(_ counts: Tally.Counts) -> String {
    var parts = ["\(counts.published) batches published", "\(counts.segments) segments", "\(counts.frames) frames"]
    if counts.duplicates > 0 { parts.append("\(counts.duplicates) published before") }
    if counts.refused > 0 { parts.append("\(counts.refused) frames refused") }
    if counts.quarantined > 0 { parts.append("\(counts.quarantined) batches in quarantine") }
    return parts.joined(separator: ", ")
  }
}

/// Monotonic seconds.
private func now() -> Int {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return time.tv_sec
}

private func check(_ operation: String, _ result: Int32) throws -> Int32 {
  guard result >= 0 else { throw SystemError(operation: operation, code: errno) }
  return result
}

struct SystemError: Error, CustomStringConvertible {
  let operation: String
  let code: Int32
  var description: String { "\(operation): \(String(cString: strerror(code)))" }
}
