import FileSystem

/// Pauses between claims that bring nothing. A queue may count names that it does not give: other workers are faster, its
/// counts lag, or it lies.
struct ClaimPace {
  /// Milliseconds between two claims that bring nothing, at least.
  static let leastMs = 200
  /// The longest pause in milliseconds: a queue that is right again is not noticed sooner.
  private static let mostMs = 2_000

  /// Claims in a row that brought nothing, and were answered at once.
  private(set) var emptyInARow = 0
  private var resumeMs = Int.min

  /// Whether the queue is not to be asked now.
  func isPausing(atMs nowMs: Int) -> Bool { nowMs < resumeMs }

  /// Notes that a claim brought a name: the next one may follow at once.
  mutating func noteFound() { self = ClaimPace() }

  /// Notes that no name waits.
  mutating func noteNoneWaiting() { emptyInARow = 0 }

  /// Notes that a claim brought nothing. A queue that has waited for a name itself has paused already.
  ///
  /// - Parameter askedMs: the begin of the claim, on the monotonic clock.
  mutating func noteEmpty(askedMs: Int, nowMs: Int) {
    if nowMs - askedMs < Self.leastMs { emptyInARow += 1 }
    // The pause has at least the half of this.
    let pauseMs = BackOff.pauseMs(failures: emptyInARow, firstMs: 2 * Self.leastMs, mostMs: Self.mostMs)
    resumeMs = max(resumeMs, askedMs + pauseMs)
  }
}
