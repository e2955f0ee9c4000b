import CLinux
import FileSystem
import Glibc
import SegmentEncoder

/// SIGTERM and SIGINT as events, instead of the process's end. Make it before any thread is started.
///
/// The process ends within nine seconds of the first signal, even if a thread hangs.
final class TerminationSignals: Sendable {
  /// In seconds.
  private static let grace: UInt32 = 8

  private let signals: Int32
  private let wakeup: Int32
  /// Readable once a signal was taken.
  private let taken: Int32

  init() throws {
    signals = clinux_termination_descriptor()
    wakeup = clinux_wake_descriptor()
    taken = clinux_wake_descriptor()
    guard signals >= 0, wakeup >= 0, taken >= 0 else { throw SystemError(operation: "signalfd", code: errno) }
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

  /// Ends the wait of the main thread; for any thread.
  var wake: @Sendable () -> Void { { [wakeup] in clinux_wake(wakeup) } }

  /// Waits for a signal, a wake-up, or something to read from `other`, whichever comes first.
  ///
  /// - Returns: whether it is a signal.
  func wait(ms: Int, _ other: Int32 = -1) -> Bool {
    var polled = [signals, wakeup, other].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    poll(&polled, nfds_t(polled.count), Int32(ms))
    var sink = [UInt8](repeating: 0, count: 4_096)
    for item in polled.dropFirst() where item.revents != 0 { while read(item.fd, &sink, sink.count) > 0 {} }
    return polled[0].revents != 0 && takePending()
  }

  /// - Returns: whether there was a signal.
  func takePending() -> Bool {
    var signal = signalfd_siginfo()
    guard read(signals, &signal, MemoryLayout<signalfd_siginfo>.size) > 0 else { return false }
    clinux_wake(taken)
    return true
  }
}

struct SystemError: Error, CustomStringConvertible {
  let operation: String
  let code: Int32
  var description: String { "\(operation): \(String(cString: strerror(code)))" }
}
