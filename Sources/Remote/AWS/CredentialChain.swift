import FileSystem

/// The credentials of a process, for all its threads. Renews them before they expire, one renewal at a time: as long as
/// the old ones are valid, other threads go on with these, and a renewal that fails fails no request.
package final class CredentialChain: Sendable {
  /// Credentials in use.
  struct Current: Sendable, SecretValue {
    let credentials: AWSCredentials
    /// On the monotonic clock; nil if nobody says when they expire.
    fileprivate let expiresAtMs: Int?
    fileprivate let renewAtMs: Int?
    fileprivate var isRefused = false
    /// Milliseconds in which one refusal is heeded.
    fileprivate let refusalPauseMs: Int
    /// Seconds until they expire; nil if nobody says when.
    let secondsLeft: Int?
    /// See ``FetchedCredentials/expiresMs``.
    let expiresMs: Int64?

    fileprivate func isUsable(at nowMs: Int) -> Bool { !isRefused && expiresAtMs.map { nowMs < $0 } ?? true }
    fileprivate func isDue(at nowMs: Int) -> Bool { isRefused || renewAtMs.map { nowMs >= $0 } ?? false }
  }

  private struct State {
    var current: Current?
    var isRenewing = false
    /// Failed renewals in a row.
    var failures = 0
    var failure: (any Error)?
    /// The earliest time of the next renewal, on the monotonic clock.
    var retryAtMs = 0
    /// The earliest time at which the next refusal is heeded.
    var refusableAtMs = 0
  }

  private enum Turn {
    case use(Current)
    case renew
    case fail(any Error)
    case cancel
  }

  private let provider: (any CredentialProvider)?
  private let nowMs: @Sendable () -> Int
  private let jitter: @Sendable () -> Double
  private let warn: @Sendable (String) -> Void
  private let state = Monitor(State())

  /// Credentials are renewed this long before they expire, or after two thirds of their life if that is shorter.
  private static let marginMs = 600_000
  /// The pause after a renewal that failed, at most.
  private static let maximumPauseMs = 15_000
  /// A renewal with all its requests takes no longer, and other threads wait a little more.
  private static let deadlineMs = 12_000
  private static let maximumWaitMs = 15_000

  /// - Parameters:
  ///   - nowMs: a monotonic clock, in milliseconds.
  ///   - jitter: from 0 to 1; how much earlier than needed a renewal begins.
  ///   - warn: called with a line for the log when renewals begin to fail.
  init(
    _ provider: (any CredentialProvider)?, nowMs: @escaping @Sendable () -> Int = { MonotonicClock.milliseconds() },
    jitter: @escaping @Sendable () -> Double = { .random(in: 0...1) },
    warn: @escaping @Sendable (String) -> Void = { _ in }
  ) {
    self.provider = provider
    self.nowMs = nowMs
    self.jitter = jitter
    self.warn = warn
  }

  /// Without credentials: requests are not signed.
  static var unsigned: CredentialChain { CredentialChain(nil) }

  var isUnsigned: Bool { provider == nil }

  /// The remedy when a service refuses the credentials.
  var remedy: String { provider?.remedy ?? "leave out --unsigned, and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" }

  /// Returns the credentials to sign with now; nil if requests are explicitly unsigned.
  ///
  /// - Throws: ``Failure``, which names the step that failed; ``Cancelled``.
  package func credentials(_ cancellation: Cancellation = .never) throws -> AWSCredentials? {
    try current(cancellation)?.credentials
  }

  /// A service said that these credentials are invalid or have expired. The next call renews them, unless a refusal has
  /// renewed them just before: then new ones do not help.
  package func refused(_ credentials: AWSCredentials) {
    guard provider?.isFixed == false else { return }
    let now = nowMs()
    state.change { state in
      guard let current = state.current, current.credentials == credentials, !current.isRefused,
        now >= state.refusableAtMs
      else { return }
      state.current?.isRefused = true
      state.refusableAtMs = now + current.refusalPauseMs
    }
  }

  /// Returns the credentials with the time that they have left.
  func current(_ cancellation: Cancellation = .never) throws -> Current? {
    guard let provider else { return nil }
    let giveUpAtMs = MonotonicClock.milliseconds() + Self.maximumWaitMs
    let turn = state.wait { state -> Monitor<State>.CheckResult<Turn> in
      let now = nowMs()
      let mayRenew = !state.isRenewing && now >= state.retryAtMs
      if let current = state.current, current.isUsable(at: now), !(current.isDue(at: now) && mayRenew) {
        return .found(.use(Self.current(current, at: now)))
      }
      if state.isRenewing {
        if cancellation.isRequested { return .found(.cancel) }
        guard MonotonicClock.milliseconds() < giveUpAtMs else { return .found(.fail(Self.late(provider))) }
        return .wait(ms: 200)
      }
      if let failure = state.failure, !mayRenew { return .found(.fail(failure)) }
      state.isRenewing = true
      return .found(.renew)
    }
    switch turn {
    case .use(let current): return current
    case .fail(let failure): throw failure
    case .cancel: throw Cancelled()
    case .renew: return try renew(provider, cancellation)
    }
  }

  private static func late(_ provider: any CredentialProvider) -> Failure {
    provider.failure("no credentials within \(deadlineMs / 1_000) s", "check the network to it")
  }

  private func renew(_ provider: any CredentialProvider, _ cancellation: Cancellation) throws -> Current {
    // From here on: the answer is younger than this.
    let begunMs = nowMs()
    let result = Result {
      do {
        return try provider.fetch(cancellation.or(afterMs: Self.deadlineMs))
      } catch is Cancelled {
        try cancellation.check()
        throw Self.late(provider)
      }
    }
    let early = jitter()
    let (outcome, isFirstFailure) = state.change { state -> (Result<Current, any Error>, Bool) in
      state.isRenewing = false
      switch result {
      case .success(let fetched):
        let current = Self.current(fetched, since: begunMs, early)
        (state.current, state.failures, state.failure, state.retryAtMs) = (current, 0, nil, 0)
        return (.success(current), false)
      case .failure(let error as Cancelled):
        // The next thread asks at once.
        return (.failure(error), false)
      case .failure(let error):
        let now = nowMs()
        state.failures += 1
        state.failure = error
        let pauseMs = min(Self.maximumPauseMs, BackOff.pauseMs(failures: state.failures, firstMs: 1_000))
        let leftMs = state.current?.expiresAtMs.map { max(0, $0 - now) } ?? .max
        // Several tries fit into the time that the old credentials have left.
        state.retryAtMs = now + min(pauseMs, max(100, leftMs / 4))
        guard let old = state.current, old.isUsable(at: now) else { return (.failure(error), false) }
        return (.success(Self.current(old, at: now)), state.failures == 1)
      }
    }
    if isFirstFailure, case .failure(let error) = result, case .success(let old) = outcome {
      warn("\(error); the old credentials are valid for \(old.secondsLeft ?? 0) s more")
    }
    return try outcome.get()
  }

  private static func current(_ fetched: FetchedCredentials, since begunMs: Int, _ jitter: Double) -> Current {
    guard let lifeMs = fetched.lifetimeMs else {
      return Current(
        credentials: fetched.credentials, expiresAtMs: nil, renewAtMs: nil, refusalPauseMs: maximumPauseMs,
        secondsLeft: nil, expiresMs: fetched.expiresMs)
    }
    let expiresAtMs = begunMs + lifeMs - min(5_000, lifeMs / 20)
    let marginMs = min(Self.marginMs, lifeMs / 3)
    let earlyMs = Int(Double(marginMs / 2) * jitter)
    return Current(
      credentials: fetched.credentials, expiresAtMs: expiresAtMs, renewAtMs: begunMs + lifeMs - marginMs - earlyMs,
      refusalPauseMs: min(maximumPauseMs, lifeMs / 2), secondsLeft: max(0, (expiresAtMs - begunMs) / 1_000),
      expiresMs: nil)
  }

  private static func current(_ held: Current, at nowMs: Int) -> Current {
    Current(
      credentials: held.credentials, expiresAtMs: held.expiresAtMs, renewAtMs: held.renewAtMs,
      refusalPauseMs: held.refusalPauseMs, secondsLeft: held.expiresAtMs.map { max(0, ($0 - nowMs) / 1_000) },
      expiresMs: held.expiresMs)
  }
}
