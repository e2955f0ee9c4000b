import FileSystem
import Synchronization
import TestSupport
import Testing

@testable import Remote

/// Tests when credentials are renewed, with a clock that the test sets.
@Suite struct CredentialChainTests {
  /// A step that gives other credentials each time: `KEY1`, `KEY2` …
  private final class Step: CredentialProvider {
    struct State {
      var calls = 0
      var lifetimeMs: Int? = 3_600_000
      var fails = false
      var isFixed = false
      /// Runs during a call.
      var meanwhile: (@Sendable () -> Void)?
    }

    let state = Mutex(State())
    var name: String { "the test's step" }
    var isFixed: Bool { state.withLock { $0.isFixed } }
    var calls: Int { state.withLock { $0.calls } }

    func set(_ change: (inout State) -> Void) { state.withLock { change(&$0) } }

    func fetch(_ cancellation: Cancellation) throws -> FetchedCredentials {
      let now = state.withLock { state in
        state.calls += 1
        return (state.calls, state.lifetimeMs, state.fails, state.meanwhile)
      }
      now.3?()
      try cancellation.check()
      guard !now.2 else { throw failure("no answer", "try it later") }
      let credentials = try #require(AWSCredentials(key: "KEY\(now.0)", secret: "hush", token: nil))
      return FetchedCredentials(credentials: credentials, lifetimeMs: now.1)
    }
  }

  private final class Clock: Sendable {
    private let ms = Mutex(1_000_000)
    var now: Int { ms.withLock { $0 } }
    func advance(s seconds: Int) { ms.withLock { $0 += 1_000 * seconds } }
  }

  private let step = Step()
  private let clock = Clock()
  private let warnings = Warnings()

  private func chain(jitter: Double = 0) -> CredentialChain {
    CredentialChain(
      step, nowMs: { [clock] in clock.now }, jitter: { jitter }, warn: { [warnings] in warnings.add($0) })
  }

  private func key(_ chain: CredentialChain) throws -> String? { try chain.credentials()?.key }

  @Test func credentialsAreRenewedTenMinutesBeforeTheyExpire() throws {
    let chain = chain()
    #expect(try key(chain) == "KEY1")
    clock.advance(s: 2_999)
    #expect(try key(chain) == "KEY1")
    clock.advance(s: 1)
    #expect(try key(chain) == "KEY2")
    #expect(step.calls == 2)
  }

  @Test func jitterMovesARenewalForward() throws {
    let chain = chain(jitter: 1)
    #expect(try key(chain) == "KEY1")
    clock.advance(s: 2_699)
    #expect(try key(chain) == "KEY1")
    clock.advance(s: 1)
    #expect(try key(chain) == "KEY2")
  }

  @Test func shortCredentialsAreRenewedAfterTwoThirdsOfTheirLife() throws {
    step.set { $0.lifetimeMs = 30_000 }
    let chain = chain()
    #expect(try key(chain) == "KEY1")
    clock.advance(s: 19)
    #expect(try key(chain) == "KEY1")
    clock.advance(s: 1)
    #expect(try key(chain) == "KEY2")
  }

  @Test func failingRenewalFailsNoRequestWhileTheOldOnesAreValid() throws {
    let chain = chain()
    #expect(try key(chain) == "KEY1")
    step.set { $0.fails = true }
    clock.advance(s: 3_100)
    for _ in 0..<20 { #expect(try key(chain) == "KEY1") }
    // One try, then a pause.
    #expect(step.calls == 2)
    for _ in 0..<20 {
      clock.advance(s: 20)
      #expect(try key(chain) == "KEY1")
    }
    #expect(step.calls == 22)
    // Each failure says the same: one line.
    #expect(warnings.all.count == 1 && warnings.all.first?.contains("the test's step: no answer") == true)
    clock.advance(s: 100)
    let error = #expect(throws: Failure.self) { try chain.credentials() }
    #expect(error?.description == "get credentials from the test's step: no answer; try it later")
    step.set { $0.fails = false }
    clock.advance(s: 20)
    #expect(try key(chain) == "KEY\(step.calls)")
  }

  @Test func failingStepIsNotAskedForEachRequest() throws {
    step.set { $0.fails = true }
    let chain = chain()
    for _ in 0..<50 { #expect(throws: Failure.self) { try chain.credentials() } }
    #expect(step.calls == 1)
    clock.advance(s: 20)
    #expect(throws: Failure.self) { try chain.credentials() }
    #expect(step.calls == 2)
  }

  @Test func refusedCredentialsAreRenewedAtOnce() throws {
    let chain = chain()
    let first = try #require(try chain.credentials())
    chain.refused(first)
    #expect(try key(chain) == "KEY2")
    // A late answer of another thread is about credentials that are gone.
    chain.refused(first)
    #expect(try key(chain) == "KEY2")
    #expect(step.calls == 2)
  }

  /// The new ones are refused, too: the step is not asked for each request.
  @Test func refusalsOneAfterTheOtherRenewOnce() throws {
    let chain = chain()
    for _ in 0..<20 { chain.refused(try #require(try chain.credentials())) }
    #expect(step.calls == 2)
    clock.advance(s: 15)
    for _ in 0..<20 { chain.refused(try #require(try chain.credentials())) }
    #expect(try key(chain) == "KEY3")
    #expect(step.calls == 3)
  }

  @Test func waitForAnotherThreadsRenewalIsCancelled() throws {
    let chain = chain()
    let threads = ThreadGroup()
    let began = Monitor(false)
    let ends = Monitor(false)
    step.set { state in
      state.meanwhile = {
        began.change { $0 = true }
        ends.wait { $0 ? .found(()) : .wait(ms: nil) }
      }
    }
    try threads.start { _ = try? chain.credentials() }
    began.wait { $0 ? .found(()) : .wait(ms: nil) }
    #expect(throws: Cancelled.self) { try chain.credentials(Cancellation { true }) }
    ends.change { $0 = true }
    threads.join()
    #expect(try key(chain) == "KEY1")
  }

  @Test func cancelledRenewalIsNoFailureOfTheStep() throws {
    let chain = chain()
    #expect(throws: Cancelled.self) { try chain.credentials(Cancellation { true }) }
    #expect(try key(chain) == "KEY2")
    #expect(warnings.all.isEmpty)
  }

  @Test func fixedCredentialsAreKeptWhenTheyAreRefused() throws {
    step.set { ($0.isFixed, $0.lifetimeMs) = (true, nil) }
    let chain = chain()
    for _ in 0..<3 { chain.refused(try #require(try chain.credentials())) }
    #expect(step.calls == 1)
  }

  @Test func oneThreadRenewsAndTheOthersGoOnWithTheOldCredentials() throws {
    let chain = chain()
    #expect(try key(chain) == "KEY1")
    clock.advance(s: 3_100)
    let threads = ThreadGroup()
    let began = Monitor(false)
    let ends = Monitor(false)
    step.set { state in
      state.meanwhile = {
        began.change { $0 = true }
        ends.wait { $0 ? .found(()) : .wait(ms: nil) }
      }
    }
    try threads.start { _ = try? chain.credentials() }
    began.wait { $0 ? .found(()) : .wait(ms: nil) }
    let during = try? chain.credentials()?.key
    ends.change { $0 = true }
    threads.join()
    #expect(during == "KEY1")
    #expect(try key(chain) == "KEY2")
    #expect(step.calls == 2)
  }

  @Test func threadsWaitForTheFirstCredentialsInsteadOfAskingThemselves() throws {
    let chain = chain()
    let threads = ThreadGroup()
    let keys = Monitor<[String]>([])
    for _ in 0..<8 {
      try threads.start {
        let key = try? chain.credentials()?.key
        keys.change { $0.append(key ?? "none") }
      }
    }
    threads.join()
    #expect(keys.read { $0 } == Array(repeating: "KEY1", count: 8))
    #expect(step.calls == 1)
  }

  @Test func secondsLeftCountDownToTheEnd() throws {
    let chain = chain()
    let first = try #require(try chain.current()?.secondsLeft)
    clock.advance(s: 100)
    #expect(try chain.current()?.secondsLeft == first - 100)
    #expect((3_590...3_600).contains(first))
  }

  @Test func onlyTheExplicitSettingGivesNoCredentials() throws {
    #expect(try CredentialChain.unsigned.credentials() == nil)
    #expect(throws: Failure.self) { try CredentialChain(NoCredentials()).credentials() }
  }
}

extension CredentialProvider {
  func fetch() throws -> FetchedCredentials { try fetch(.never) }
}

/// Lines that were said.
final class Warnings: Sendable {
  private let lines = Mutex<[String]>([])
  var all: [String] { lines.withLock { $0 } }
  func add(_ line: String) { lines.withLock { $0.append(line) } }
}
