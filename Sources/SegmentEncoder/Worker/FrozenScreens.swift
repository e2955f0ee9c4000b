import Encoding
import FileSystem
import FrameBatches
import Sessions
import Synchronization

/// A screen that has not changed for long, although its recorder went on.
package struct FrozenScreen: Sendable, Equatable {
  package let session: SessionID
  /// The first capture that shows this picture, in unix milliseconds.
  package let sinceMs: Int64
  /// The last one.
  package let untilMs: Int64
  /// Whether all pixels of the picture have one colour.
  package let isBlank: Bool
}

/// The last picture of each session, and since when it has been on screen. It is known from the batches that this worker has published
/// since its start. For any thread.
package final class FrozenScreens: Sendable {
  /// The news that a batch brings of a screen.
  enum Change: Equatable {
    case frozen(FrozenScreen)
    /// It has changed again.
    case changed(FrozenScreen)

    var screen: FrozenScreen {
      switch self {
      case .frozen(let screen), .changed(let screen): screen
      }
    }
  }

  fileprivate struct State {
    var screen: StillScreen
    /// The first capture that shows its picture.
    var sinceMs: Int64
    var isFrozen = false
    /// When its last batch was published, on the monotonic clock.
    var seenMs: Int
  }

  /// Maximum number of sessions that are known at a time.
  static let maximumSessions = 10_000

  private let afterMs: Int64
  private let states = Mutex<[SessionID: State]>([:])

  /// - Parameter afterMs: the time without a change after which a screen is frozen, in milliseconds.
  package init(afterMs: Int64) { self.afterMs = afterMs }

  /// Takes note of a session's batch.
  ///
  /// - Parameter nowMs: on the monotonic clock.
  /// - Returns: nil if it tells nothing new.
  func add(_ receipt: Receipt, nowMs: Int = MonotonicClock.milliseconds()) -> Change? {
    guard let screen = receipt.screen else { return nil }
    return states.withLock { states in
      let last = states[receipt.session]
      // A batch that comes late tells nothing of now.
      if let last, screen.untilMs <= last.screen.untilMs { return nil }
      makeRoom(in: &states, nowMs)
      var state = State(screen: screen, sinceMs: screen.sinceMs, seenMs: nowMs)
      if let last, screen.isWhole, screen.picture == last.screen.picture,
        screen.sinceMs - last.screen.untilMs <= afterMs
      {
        (state.sinceMs, state.isFrozen) = (last.sinceMs, last.isFrozen)
      }
      defer { states[receipt.session] = state }
      if !state.isFrozen, screen.untilMs - state.sinceMs >= afterMs {
        state.isFrozen = true
        return .frozen(state.frozen(receipt.session))
      }
      guard let last, last.isFrozen, !state.isFrozen else { return nil }
      return .changed(last.frozen(receipt.session))
    }
  }

  /// The number of frozen screens, and of those among them whose pixels have one colour. A session of which nothing was published for
  /// the time after which a screen is frozen counts no more.
  package var counts: (frozen: Int, blank: Int) { counts(nowMs: MonotonicClock.milliseconds()) }

  func counts(nowMs: Int) -> (frozen: Int, blank: Int) {
    states.withLock { states in
      states.values.reduce(into: (0, 0)) { counts, state in
        guard state.isFrozen, Int64(nowMs - state.seenMs) <= afterMs else { return }
        counts.0 += 1
        if state.screen.isBlank { counts.1 += 1 }
      }
    }
  }

  /// Forgets sessions of which nothing has come for long, and then the oldest.
  private func makeRoom(in states: inout [SessionID: State], _ nowMs: Int) {
    guard states.count >= Self.maximumSessions else { return }
    states = states.filter { Int64(nowMs - $0.value.seenMs) <= afterMs }
    guard states.count >= Self.maximumSessions else { return }
    // Half of them, so that this is done seldom.
    let oldest = states.sorted { $0.value.seenMs < $1.value.seenMs }.prefix(states.count / 2)
    for (session, _) in oldest { states[session] = nil }
  }
}

extension FrozenScreens.State {
  fileprivate func frozen(_ session: SessionID) -> FrozenScreen {
    FrozenScreen(session: session, sinceMs: sinceMs, untilMs: screen.untilMs, isBlank: screen.isBlank)
  }
}
