import FileSystem
import Synchronization

/// A request to stop, by a signal. For several threads.
final class SignalledStop: Sendable {
  private let signals: TerminationSignals
  private let wasSeen = Atomic<Bool>(false)

  init(_ signals: TerminationSignals) { self.signals = signals }

  var isRequested: Bool {
    if wasSeen.load(ordering: .relaxed) { return true }
    guard signals.takePending() else { return false }
    wasSeen.store(true, ordering: .relaxed)
    return true
  }

  /// - Throws: ``Cancelled`` after a signal.
  func check() throws(Cancelled) {
    if isRequested { throw Cancelled() }
  }
}
