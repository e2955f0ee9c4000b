import CLinux
import FileSystem
import Glibc
import Synchronization

/// The stop request of a worker, and the heartbeat of its loop. For any thread.
package final class ShutdownState: Sendable {
  /// Seconds that batches in work may take after a stop request; then they are put back.
  private static let grace = 5

  private let wakeup: Int32
  private let loopThread = Atomic<UInt>(0)
  private let lastBeat = Atomic(MonotonicClock.seconds())
  /// The time when batches in work are put back, in monotonic seconds.
  private let stopAt = Atomic<Int>(.max)

  package init() throws(DiskError) {
    wakeup = clinux_wake_descriptor()
    guard wakeup >= 0 else { throw DiskError("eventfd", "worker") }
  }

  deinit { close(wakeup) }

  /// Seconds since the last heartbeat of the loop.
  package var silentS: Int { MonotonicClock.seconds() - lastBeat.load(ordering: .relaxed) }

  package var isStopping: Bool { stopAt.load(ordering: .relaxed) != .max }
  package var isOverdue: Bool { isStopping && MonotonicClock.seconds() >= stopAt.load(ordering: .relaxed) }

  /// Requests a stop: batches in work have some seconds to finish, and are put back then. Another call does not extend that time.
  package func stop() {
    _ = stopAt.compareExchange(expected: .max, desired: MonotonicClock.seconds() + Self.grace, ordering: .relaxed)
    wake()
  }

  /// Ends the loop's wait.
  package func wake() { clinux_wake(wakeup) }

  /// Call it on the loop's thread.
  func beginLoop() {
    loopThread.store(UInt(pthread_self()), ordering: .relaxed)
    beat()
  }

  /// Records a heartbeat of the loop.
  func beat() { lastBeat.store(MonotonicClock.seconds(), ordering: .relaxed) }

  /// Waits for a wake-up, or something to read from `other`, whichever comes first.
  func wait(ms: Int, _ other: Int32 = -1) {
    var polled = [wakeup, other].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    poll(&polled, nfds_t(polled.count), Int32(ms))
    var sink = [UInt8](repeating: 0, count: 4_096)
    for item in polled where item.revents != 0 { while read(item.fd, &sink, sink.count) > 0 {} }
  }

  /// Whether long work should continue. For any thread.
  package func shouldContinue() -> Bool {
    if loopThread.load(ordering: .relaxed) == UInt(pthread_self()) { beat() }
    return !isOverdue
  }
}
