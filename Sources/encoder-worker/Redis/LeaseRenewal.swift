import CLinux
import Encoding
import FileSystem
import Glibc
import SegmentEncoder
import Synchronization

/// A thread that does something again and again, until it is stopped.
final class LeaseRenewal: Sendable {
  private let wakeup: Int32
  private let threads = Mutex(ThreadGroup())

  init(everyMs interval: Int, _ renew: @escaping @Sendable () -> Void) throws {
    wakeup = clinux_wake_descriptor()
    guard wakeup >= 0 else { throw SystemError(operation: "eventfd", code: errno) }
    // The signals are the main thread's.
    var before = sigset_t()
    clinux_block_signals(&before)
    defer { clinux_restore_signals(&before) }
    try threads.withLock { threads in
      try threads.start { [wakeup] in
        var dueMs = MonotonicClock.milliseconds() + interval
        while !Self.isWoken(wakeup, within: dueMs - MonotonicClock.milliseconds()) {
          if MonotonicClock.milliseconds() < dueMs { continue }
          renew()
          dueMs = MonotonicClock.milliseconds() + interval
        }
      }
    }
  }

  /// Where nothing can be waited for, time still passes: who stopped for that would lose all leases, and nobody would know.
  private static func isWoken(_ wakeup: Int32, within milliseconds: Int) -> Bool {
    let restMs = max(0, milliseconds)
    var woken = pollfd(fd: wakeup, events: Int16(POLLIN), revents: 0)
    let count = poll(&woken, 1, Int32(clamping: restMs))
    guard count < 0 else { return count > 0 }
    if errno != EINTR { usleep(1_000 * UInt32(min(restMs, 100))) }
    var value: eventfd_t = 0
    return eventfd_read(wakeup, &value) == 0
  }

  /// Waits until it has ended.
  func stop() {
    clinux_wake(wakeup)
    threads.withLock { $0.join() }
  }

  deinit {
    stop()
    close(wakeup)
  }
}
