import FileSystem
import Glibc
import SegmentEncoder
import Synchronization

/// Whether a worker lives, and whether it is to go on; made on its main thread.
final class WorkerPulse: Sendable {
  /// How long what is being done may go on after a signal, in seconds; then it is handed back.
  private static let grace = 5

  let signals: TerminationSignals
  private let mainThread = pthread_self()
  private let lastBeat = Atomic(MonotonicClock.seconds())
  /// When what is being done is handed back, in monotonic seconds.
  private let stopAt = Atomic<Int>(.max)

  init() throws { signals = try TerminationSignals() }

  /// For how long the main thread has shown no life, in seconds.
  var silentS: Int { MonotonicClock.seconds() - lastBeat.load(ordering: .relaxed) }

  /// The main thread lives.
  func beat() { lastBeat.store(MonotonicClock.seconds(), ordering: .relaxed) }

  /// A first signal ends the work in time; another one ends the process where it stands.
  func noteSignal() {
    if isStopping { _exit(0) }
    stopAt.store(MonotonicClock.seconds() + Self.grace, ordering: .relaxed)
  }

  var isStopping: Bool { stopAt.load(ordering: .relaxed) != .max }
  var isOverdue: Bool { isStopping && MonotonicClock.seconds() >= stopAt.load(ordering: .relaxed) }

  /// Asked in the middle of long work, on any thread; the main thread hears of signals here while it does such work itself.
  func goesOn() -> Bool {
    if pthread_equal(pthread_self(), mainThread) != 0 { beat() }
    if signals.takePending() {
      noteSignal()
      signals.wake()
    }
    return !isOverdue
  }
}
