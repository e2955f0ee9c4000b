import CLinux
import Glibc
import Synchronization

/// A thread that calls a function at an interval, until it is stopped.
package final class PeriodicThread: Sendable {
  private let wakeup: Int32
  private let threads = Mutex(ThreadGroup())

  /// - Parameters:
  ///   - name: names the thread in errors.
  ///   - interval: the pause before each call, in milliseconds.
  package init(_ name: String, everyMs interval: Int, _ body: @escaping @Sendable () -> Void) throws(DiskError) {
    wakeup = clinux_wake_descriptor()
    guard wakeup >= 0 else { throw DiskError("eventfd", name) }
    // The threads that wait for signals receive them, not this one.
    var before = sigset_t()
    clinux_block_signals(&before)
    defer { clinux_restore_signals(&before) }
    try threads.withLock { (threads) throws(DiskError) in
      try threads.start { [wakeup] in
        var dueMs = MonotonicClock.milliseconds() + interval
        while !Self.isWoken(wakeup, within: dueMs - MonotonicClock.milliseconds()) {
          if MonotonicClock.milliseconds() < dueMs { continue }
          body()
          dueMs = MonotonicClock.milliseconds() + interval
        }
      }
    }
  }

  /// Waits for `stop`. When poll(2) fails it sleeps instead: a thread that ended here would lose all leases unnoticed.
  private static func isWoken(_ wakeup: Int32, within milliseconds: Int) -> Bool {
    let timeoutMs = max(0, milliseconds)
    var woken = pollfd(fd: wakeup, events: Int16(POLLIN), revents: 0)
    let count = poll(&woken, 1, Int32(clamping: timeoutMs))
    guard count < 0 else { return count > 0 }
    if errno != EINTR { usleep(1_000 * UInt32(min(timeoutMs, 100))) }
    var value: eventfd_t = 0
    return eventfd_read(wakeup, &value) == 0
  }

  /// Ends the thread and waits until it has ended.
  package func stop() {
    clinux_wake(wakeup)
    threads.withLock { $0.join() }
  }

  deinit {
    stop()
    close(wakeup)
  }
}
