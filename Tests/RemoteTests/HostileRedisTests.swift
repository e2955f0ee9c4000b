import FileSystem
import TestSupport
import Testing

@testable import Remote

/// Tests the client of Redis against a server that lies.
@Suite struct HostileRedisTests {
  private func failure(_ mode: String) throws -> Failure {
    let server = try HostileRedis(mode)
    // A slow machine must not cause a timeout where another cause is tested.
    let connection = try RedisConnection(RedisURL(server.url), timeoutS: mode == "drip" ? 3 : 60)
    let failure = try #require(throws: Failure.self) { try connection.ask(["PING"], to: "look") }
    #expect(failure.kind == .environment && failure.operation == "look, in the queue")
    #expect(failure.subject.contains("127.0.0.1:\(server.port)") && !failure.advice.isEmpty)
    #expect(failure.description.utf8.count < 1_000)
    return failure
  }

  @Test func replyThatDripsEndsAtTheDeadlineOfTheWhole() throws {
    let cause = try failure("drip").cause
    #expect(cause.hasPrefix("no whole answer within 3 s, only ") && cause.hasSuffix(" bytes of it"), "\(cause)")
  }

  @Test(arguments: [
    ("endless-list", "an answer of more than 65536 elements"),
    ("endless-lists", "an answer of more than 65536 elements"),
    ("endless-text", "an answer of more than 1048576 bytes"), ("endless-line", "an answer of more than 1048576 bytes"),
    ("twice", "more than one answer"), ("deep", "depth"), ("garbage", "Protocol error"),
  ])
  func replyBeyondABoundNamesTheBound(mode: String, cause: String) throws {
    let failure = try failure(mode)
    #expect(failure.cause.contains(cause) && failure.advice == "check that it is Redis", "\(failure)")
  }

  @Test func connectionIsNewAfterAReplyBeyondABound() throws {
    let server = try HostileRedis("twice")
    let connection = try RedisConnection(RedisURL(server.url), timeoutS: 60)
    for _ in 0..<3 { #expect(throws: Failure.self) { try connection.ask(["PING"], to: "look") } }
    #expect(try server.counts()["info"] == 3)
  }

  @Test func longErrorIsCut() throws {
    let server = try HostileRedis("error")
    let connection = try RedisConnection(RedisURL(server.url), timeoutS: 60)
    guard case .refusal(let text) = try connection.ask(["PING"], to: "look") else { throw Tool.Failure("no error") }
    #expect(text.hasPrefix("ERR xxx") && text.utf8.count == 500)
  }

  /// Texts that a worker logs, or sends again with each command.
  @Test(arguments: ["digest", "group", "store", "version"]) func longTextsOfAGreetingAreNotRepeated(mode: String) throws
  {
    let server = try HostileRedis(mode)
    let failure = try #require(throws: Failure.self) { try stream(server) }
    #expect(failure.description.utf8.count < 1_000 && !failure.description.contains("\n"))
    #expect(try server.counts()["next"] == nil)
  }

  private func stream(_ server: HostileRedis) throws -> RedisStream {
    try RedisStream(
      RedisURL(server.url), consumer: "one", store: "s3://test/", lease: 3_600, allowsNonDurable: false, warn: { _ in })
  }

  @Test(arguments: [("attempts-high", 1 << 40), ("attempts-low", 0)]) func attemptsAreClamped(
    mode: String, attempt: Int
  )
    throws
  {
    let server = try HostileRedis(mode)
    defer { withExtendedLifetime(server) {} }
    let queue = try stream(server)
    let claim = try #require(try queue.next())
    #expect(claim.attempt == attempt && claim.failures == attempt)
    let taken = try #require(try queue.takeOver().first)
    #expect(taken.name == "tablet@1.tar" && taken.attempt == attempt)
    #expect(try queue.heldElsewhereCount() == max(0, attempt - 2))
  }

  /// Entries without a name, and replies that tell of duplicates, may never end.
  @Test(arguments: [("nameless", 200), ("duplicates", 200)]) func claimReadsABoundedNumberOfUselessReplies(
    mode: String, count: Int
  ) throws {
    let server = try HostileRedis(mode)
    #expect(try stream(server).next() == nil)
    #expect(try server.counts()["next"] == count)
  }

  @Test func replyOfTheWrongTypeThrowsOrIsNothing() throws {
    let queue = try stream(HostileRedis("types"))
    for _ in 0..<40 {
      _ = try? queue.next()
      _ = try? queue.takeOver()
      _ = try? queue.waitingCount()
      _ = try? queue.heldElsewhereCount()
    }
    #expect(queue.heldCount == 0)
  }
}
