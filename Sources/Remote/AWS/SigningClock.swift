import FileSystem
import Synchronization

/// The time of signatures: this machine's clock, corrected by what services say. They refuse signatures that are some
/// minutes off.
final class SigningClock: Sendable {
  private let wallMs: @Sendable () -> Int64
  private let warn: @Sendable (String) -> Void
  private let state = Mutex((offsetMs: Int64(0), hasWarned: false))

  /// A difference that services tolerate: Amazon's refuse 15 minutes, and some 5.
  private static let toleratedMs: Int64 = 4 * 60_000

  /// - Parameters:
  ///   - wallMs: returns unix milliseconds.
  ///   - warn: called once with a line for the log.
  init(
    wallMs: @escaping @Sendable () -> Int64 = { WallClock.nowMs }, warn: @escaping @Sendable (String) -> Void = { _ in }
  ) {
    self.wallMs = wallMs
    self.warn = warn
  }

  /// Unix milliseconds.
  var nowMs: Int64 { wallMs() &+ state.withLock { $0.offsetMs } }

  /// Takes over the time of a service that refused a signature.
  ///
  /// - Parameter serviceMs: of the answer's Date header, in unix milliseconds.
  /// - Returns: whether the time was wrong, so that a request with the new one may succeed.
  func correct(by serviceMs: Int64) -> Bool {
    let offsetMs = serviceMs &- wallMs()
    let (isWrong, isNew) = state.withLock { state in
      guard (offsetMs &- state.offsetMs).magnitude > Self.toleratedMs else { return (false, false) }
      state.offsetMs = offsetMs
      defer { state.hasWarned = true }
      return (true, !state.hasWarned)
    }
    if isNew {
      let direction = offsetMs > 0 ? "behind" : "ahead"
      warn(
        "this machine's clock is \(offsetMs.magnitude / 1_000) s \(direction) of the service's; signing with its time; set the clock"
      )
    }
    return isWrong
  }
}
