import Encoding
import FileSystem

/// The frame that the last batch of a thread ended with, for the next one.
final class KeptFrame: Sendable {
  private struct State {
    var frame: LastFrame?
    /// In monotonic milliseconds.
    var sinceMs = 0
  }

  /// How long the frame waits for the next batch. Its session may be deleted meanwhile.
  private static let longestMs = 10_000

  private let state = Monitor(State())

  func take() -> LastFrame? { state.change { $0.frame.take() } }

  func keep(_ frame: LastFrame?) {
    state.change { $0 = State(frame: frame, sinceMs: MonotonicClock.milliseconds()) }
  }

  func forgetIfIdle() {
    let latest = MonotonicClock.milliseconds() - Self.longestMs
    state.change { if $0.sinceMs < latest { $0.frame = nil } }
  }
}
