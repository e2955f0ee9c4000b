import CLinux
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
        var woken = pollfd(fd: wakeup, events: Int16(POLLIN), revents: 0)
        while poll(&woken, 1, Int32(interval)) == 0 { renew() }
      }
    }
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
