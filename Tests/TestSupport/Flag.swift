import FileSystem

/// A flag that threads wait for; never for ever, so that a fault fails the test.
public final class Flag: Sendable {
  private let state = Monitor(false)

  public init() {}

  public func set() { state.change { $0 = true } }
  public var isSet: Bool { state.read { $0 } }

  /// Waits until the flag is set.
  ///
  /// - Returns: whether it is.
  public func wait() -> Bool {
    let until = MonotonicClock.milliseconds() + 60_000
    return state.wait { isSet -> Monitor<Bool>.CheckResult<Bool> in
      isSet || MonotonicClock.milliseconds() > until ? .found(isSet) : .wait(ms: 1_000)
    }
  }
}
