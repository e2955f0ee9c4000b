import CLinux
import Glibc
import Synchronization

/// A thread of its own that does something again and again, until it is stopped.
package final class PeriodicThread: Sendable {
  private let wakeup: Int32
  private let threads = Mutex(ThreadGroup())

  /// - Parameters:
  ///   - name: what the thread is called in errors.
  ///   - interval: the pause before each call, in milliseconds.
  package init(_ name: String, everyMs interval: Int, _ body: @escaping @Sendable () -> Void) throws(DiskError) {
    wakeup = clinux_wake_descriptor()
    guard wakeup >= 0 else { throw DiskError("eventfd", name) }
    // The signals are for the threads that wait for them.
    var before = sigset_t()
    clinux_block_signals(&before)
    defer { clinux_restore_signals(&before) }
    do {
      try threads.withLock { (threads) throws(ThreadError) in
        try threads.start { [wakeup] in
          var dueMs = MonotonicClock.milliseconds() + interval
          while !Self.isWoken(wakeup, within: dueMs - MonotonicClock.milliseconds()) {
            if MonotonicClock.milliseconds() < dueMs { continue }
            body()
            dueMs = MonotonicClock.milliseconds() + interval
          }
        }
      }
    } catch {
      throw DiskError("pthread_create", name, code: error.code)
    }
  }

  /// Where nothing can be waited for, time still passes: a thread that stopped here would lose all leases unnoticed.
  private static func isWoken(_ wakeup: Int32, within milliseconds: Int) -> Bool {
    let pollIntervalMs = max(0, milliseconds)
    var woken = pollfd(fd: wakeup, events: Int16(POLLIN), revents: 0)
    let count = poll(&woken, 1, Int32(clamping: pollIntervalMs))
    guard count < 0 else { return count > 0 }
    if errno != EINTR { usleep(1_000 * UInt32(min(pollIntervalMs, 100))) }
    var value: eventfd_t = 0
    return eventfd_read(wakeup, &value) == 0
  }

  /// Waits until it has ended.
  package func stop() {
    clinux_wake(wakeup)
    threads.withLock { $0.join() }
  }

  deinit {
    stop()
    close(wakeup)
  }
}
