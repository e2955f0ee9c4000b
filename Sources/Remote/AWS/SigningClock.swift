import FileSystem
import Synchronization

/// The time of signatures: this machine's clock, corrected by what services say. They refuse signatures that are some
/// minutes off.
final class SigningClock: Sendable {
  private let wallMs: @Sendable () -> Int64
  private let warn: @Sendable (String) -> Void
  private let state = Mutex((offsetsMs: [String: Int64](), hasWarned: false))

  /// A difference that services tolerate: Amazon's refuse 15 minutes, and some 5.
  private static let toleratedMs: Int64 = 4 * 60_000

  /// The store, the queue and STS; more come only from a mistake.
  private static let maximumHosts = 16

  /// - Parameters:
  ///   - wallMs: returns unix milliseconds.
  ///   - warn: called once with a line for the log.
  init(
    wallMs: @escaping @Sendable () -> Int64 = { WallClock.nowMs }, warn: @escaping @Sendable (String) -> Void = { _ in }
  ) {
    self.wallMs = wallMs
    self.warn = warn
  }

  /// Returns unix milliseconds by the clock of a host.
  func nowMs(for host: String) -> Int64 { wallMs() &+ state.withLock { $0.offsetsMs[host] ?? 0 } }

  /// Takes over the time of a service that refused a signature.
  ///
  /// - Parameters:
  ///   - serviceMs: of the answer's Date header, in unix milliseconds.
  ///   - host: of the service. Each has its own clock.
  /// - Returns: whether the time was wrong, so that a request with the new one may succeed.
  func correct(by serviceMs: Int64, for host: String) -> Bool {
    let offsetMs = serviceMs &- wallMs()
    let (isWrong, isNew) = state.withLock { state in
      guard (offsetMs &- (state.offsetsMs[host] ?? 0)).magnitude > Self.toleratedMs else { return (false, false) }
      if state.offsetsMs.count >= Self.maximumHosts { state.offsetsMs.removeAll() }
      state.offsetsMs[host] = offsetMs
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
