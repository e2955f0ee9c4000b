import FileSystem
import Synchronization

/// Renews the leases of a worker's messages, and says why it cannot. A claim that is lost then was no failure of its batch: its attempt
/// is taken back.
final class LeaseRenewal: Sendable {
  private struct State {
    var isFailing = false
    /// Messages whose attempt is to be taken back.
    var lost: [String] = []
  }

  private static let maximumLost = 1_000

  private let held: HeldMessages
  private let notes: AttemptNoteStore
  private let queue: SQSAddress
  private let warn: @Sendable (String) -> Void
  private let state = Mutex(State())

  /// - Parameter warn: called with a line for the log, once when renewals begin to fail, and when claims are lost.
  init(
    of held: HeldMessages, _ queue: SQSAddress, _ notes: AttemptNoteStore, warn: @escaping @Sendable (String) -> Void
  ) {
    (self.held, self.queue, self.notes, self.warn) = (held, queue, notes, warn)
  }

  /// Renews the leases that are due. Those that failed are due again.
  func run() {
    do {
      if try held.renewDue() { state.withLock { $0.isFailing = false } }
    } catch is Cancelled {
      // The worker stops.
    } catch {
      let isFirst = state.withLock { state in
        defer { state.isFailing = true }
        return !state.isFailing
      }
      if isFirst { warn("the queue \(queue): leases cannot be renewed: \(error)") }
    }
    collectLost()
  }

  private func collectLost() {
    let lost = held.takeLost()
    guard let cause = lost.first?.failure else { return }
    let attempts = lost.filter(\.hasBegun).map(\.message.id)
    state.withLock { $0.lost = Array(($0.lost + attempts).suffix(Self.maximumLost)) }
    warn("the queue \(queue): \(lost.count) claims are lost, because their leases could not be renewed: \(cause)")
  }

  /// Takes back the attempts that were lost. Those that the store does not take now wait for the next call.
  func takeAttemptsBack() {
    collectLost()
    while let message = state.withLock({ $0.lost.popLast() }) {
      do {
        try notes.takeBack(message)
      } catch {
        return state.withLock { $0.lost.append(message) }
      }
    }
  }
}
