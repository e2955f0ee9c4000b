import FileSystem

/// Lets a few requests at a time read their batches: a batch may take as much memory as its limits allow. Of producers that wait, one that
/// has no reader comes first.
final class ReaderGate: Sendable {
  private static let width = 2
  private static let patienceMs = 30_000

  private struct State {
    var reading = HeldShares()
    var waiting = HeldShares()
  }

  private let state = Monitor(State())

  /// - Throws: ``ProblemDetails`` if the others take long.
  func pass<R>(for producer: Producer?, _ body: () throws -> R) throws -> R {
    let untilMs = MonotonicClock.milliseconds() + Self.patienceMs
    state.change { $0.waiting.add(1, of: producer) }
    let isFree = state.wait { state -> Monitor<State>.CheckResult<Bool> in
      let othersWait = state.waiting.all > state.waiting[producer]
      if state.reading.all < Self.width, state.reading[producer] == 0 || !othersWait {
        state.reading.add(1, of: producer)
        return .found(true)
      }
      let leftMs = untilMs - MonotonicClock.milliseconds()
      return leftMs > 0 ? .wait(ms: leftMs) : .found(false)
    }
    state.change { $0.waiting.add(-1, of: producer) }
    guard isFree else { throw ProblemDetails(.tooMany, "other batches are being read", retryAfterS: 5) }
    defer { state.change { $0.reading.add(-1, of: producer) } }
    return try body()
  }
}
