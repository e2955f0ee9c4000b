import CLinux
import FileSystem
import Glibc
import SegmentEncoder

/// SIGTERM and SIGINT as events, instead of the process's end. Make it before any thread is started.
///
/// The process ends within nine seconds of the first signal, even if a thread hangs.
final class TerminationSignals: Sendable {
  /// Seconds until the process ends, whatever its threads do.
  private static let grace: UInt32 = 8

  private let signals: Int32
  private let wakeup: Int32
  /// Readable after ``takePending()`` has taken a signal.
  private let taken: Int32

  init() throws {
    signals = clinux_termination_descriptor()
    wakeup = clinux_wake_descriptor()
    taken = clinux_wake_descriptor()
    guard signals >= 0, wakeup >= 0, taken >= 0 else {
      throw Failure(.environment, "signalfd", "", String(cString: strerror(errno)))
    }
    try ThreadGroup().start { [signals, taken] in
      var watched = [signals, taken].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
      while poll(&watched, 2, -1) <= 0 {}
      sleep(Self.grace)
      StandardError.writeWithTimeout {
        StandardError.removeBar()
        say("encoder-worker: a thread did not end \(Self.grace) s after the signal; nothing is lost", .warning)
      }
      _exit(ExitStatus.temporaryFailure.rawValue)
    }
  }

  /// Ends the wait of the main thread. For any thread.
  var wake: @Sendable () -> Void { { [wakeup] in clinux_wake(wakeup) } }

  /// Waits for a signal or a wake-up, whichever comes first; returns whether it is a signal.
  func wait(ms: Int) -> Bool {
    var polled = [signals, wakeup].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    poll(&polled, nfds_t(polled.count), Int32(ms))
    var count: eventfd_t = 0
    if polled[1].revents != 0 { eventfd_read(wakeup, &count) }
    return polled[0].revents != 0 && takePending()
  }

  /// Takes a signal that waits; returns whether there was one.
  func takePending() -> Bool {
    var signal = signalfd_siginfo()
    guard read(signals, &signal, MemoryLayout<signalfd_siginfo>.size) > 0 else { return false }
    clinux_wake(taken)
    return true
  }
}
