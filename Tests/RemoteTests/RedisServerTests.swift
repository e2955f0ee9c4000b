import FrameBatches
import Glibc
import JSON
import SegmentEncoder
import Sessions
import Synchronization
import TestSupport
import Testing
import WorkQueues

@testable import FileSystem
@testable import Remote

/// Tests connections to Redis, and the durability checks on it.
@Suite(.enabled(if: QueueServer.isInstalled, "there is no redis-server: scripts/setup test"))
struct RedisServerTests {
  private func stream(
    _ url: String, store: String = "s3://test/", allowsNonDurable: Bool = false,
    warn: @escaping @Sendable (String) -> Void = { _ in }
  ) throws -> RedisStream {
    try RedisStream(
      RedisURL(url), consumer: "one", store: store, lease: 60, allowsNonDurable: allowsNonDurable, warn: warn)
  }

  @Test func queueIsReachableThroughAUnixSocket() throws {
    let server = try QueueServer()
    #expect(try stream("unix://\(server.socket)").add(["a"]) == 1)
    #expect(try stream(server.url).next()?.name == "a")
  }

  @Test func userPasswordAndDatabaseAreUsed() throws {
    let server = try QueueServer(password: "top secret")
    try server.command("ACL", "SETUSER", "worker", "on", ">pass/word", "~*", "+@all")
    let url = server.url.replacing("://", with: "://worker:pass%2Fword@") + "/3?stream=mine"
    #expect(try stream(url).add(["a"]) == 1)
    #expect(try stream(server.url.replacing("://", with: "://:top%20secret@") + "/3?stream=mine").waitingCount() == 1)
    #expect(try server.command("EXISTS", "mine") == ["0"])
  }

  @Test func noMessageContainsThePassword() throws {
    let server = try QueueServer(password: "right")
    let wrong = server.url.replacing("://", with: "://user:wrong@")
    for url in [wrong, server.url] {
      let refusal = #expect(throws: Failure.self) { try stream(url) }
      #expect(refusal?.description.contains("give its user and password") == true)
      #expect(refusal?.description.contains("wrong@") == false)
    }
    server.stop()
    let failure = #expect(throws: Failure.self) { try stream(wrong) }
    #expect(failure?.description.contains("127.0.0.1:\(server.port)") == true)
    #expect(failure?.description.contains("Connection refused") == true)
    #expect(failure?.description.contains("wrong") == false)
    #expect(!"\(try RedisURL(wrong))".contains("wrong"))
  }

  @Test(arguments: [
    (["--appendonly", "no"], "appendonly is off"),
    (["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"], "maxmemory-policy is allkeys-lru"),
  ])
  func nonDurableRedisIsRefusedUnlessAllowed(_ options: [String], _ reason: String) throws {
    let server = try QueueServer(options)
    let refusal = #expect(throws: NonDurableRedis.self) { try stream(server.url) }
    #expect(refusal?.description.contains(reason) == true)
    #expect(refusal?.description.contains("--allow-non-durable-queue") == true)
    #expect(try server.command("EXISTS", "encoder-worker") == ["0"])
    let warnings = Mutex<[String]>([])
    let allowed = try stream(server.url, allowsNonDurable: true) { warning in warnings.withLock { $0.append(warning) } }
    #expect(try allowed.add(["a"]) == 1)
    #expect(warnings.withLock { $0.count == 1 && $0[0].contains(reason) })
  }

  @Test func redisThatLosesPersistenceIsRefusedUntilPersistenceIsRestored() throws {
    let server = try QueueServer()
    let warnings = Mutex<[String]>([])
    let queue = try stream(server.url)
    let allowed = try stream(server.url, allowsNonDurable: true) { warning in warnings.withLock { $0.append(warning) } }
    #expect(try queue.add(["a"]) == 1)
    #expect(warnings.withLock { $0.isEmpty })
    try server.command("CONFIG", "SET", "appendonly", "no")
    try server.command("CLIENT", "KILL", "TYPE", "normal")
    // Each client detects its broken connection and reconnects.
    for queue in [queue, allowed] { #expect(throws: Failure.self) { try queue.waitingCount() } }
    #expect(try allowed.waitingCount() == 1)
    for _ in 0..<2 { #expect(throws: NonDurableRedis.self) { try queue.waitingCount() } }
    #expect(warnings.withLock { $0.count == 1 && $0[0].contains("appendonly is off") })
    #expect(Disposition(of: NonDurableRedis(queue: "", weaknesses: [.cannotWrite]), batch: "a") == .retry)
    try server.command("CONFIG", "SET", "appendonly", "yes")
    #expect(try queue.waitingCount() == 1)
  }

  @Test func streamOfAnotherStoreIsRefused() throws {
    let server = try QueueServer()
    let key = "{encoder-worker}:store"
    let one = try stream(server.url, store: "s3://one/")
    #expect(try one.add(["a"]) == 1)
    let refusal = #expect(throws: Failure.self) { try stream(server.url, store: "s3://two/") }
    for word in ["store s3://one/", "not of s3://two/", "?stream=NAME", "delete the key \(key)"] {
      #expect(refusal?.description.contains(word) == true)
    }
    #expect(try stream(server.url, store: "s3://one/").waitingCount() == 1)
    #expect(try stream(server.url + "?stream=two", store: "s3://two/").waitingCount() == 0)
    // After a data loss, any worker can be the first to connect.
    try server.flush()
    #expect(try one.waitingCount() == 0)
    #expect(try server.command("GET", key) == ["s3://one/"])
    try server.flush()
    let two = try stream(server.url, store: "s3://two/")
    #expect(throws: Failure.self) { try one.add(["a"]) }
    #expect(try two.waitingCount() == 0)
    // The operator moved the stream to another store.
    try server.command("DEL", key)
    #expect(try stream(server.url, store: "s3://three/").waitingCount() == 0)
    #expect(try server.command("GET", key) == ["s3://three/"])
  }

  @Test func fullRedisRefusesNewEntriesAndKeepsClaimedOnes() throws {
    let server = try QueueServer(["--maxmemory", "3mb"])
    let queue = try stream(server.url)
    #expect(try queue.add(["a", "b"]) == 2)
    let entry = try #require(try queue.next())
    // Redis refuses further entries, but the worker can still acknowledge a claimed one.
    let refusal = #expect(throws: Failure.self) {
      for index in 0..<1_000 {
        _ = try queue.add((0..<100).map { String(repeating: "x", count: 500) + "\(index).\($0)" })
      }
    }
    #expect(refusal?.description.contains("give Redis more memory") == true)
    try queue.acknowledge(entry)
    #expect(try server.command("HEXISTS", "{encoder-worker}:batches", entry.name) == ["0"])
  }

  @Test func failedLastWriteOfTheAppendOnlyFileCountsAsAWeakness() {
    let facts = RedisInfo(.bytes(Array("# Persistence\r\naof_enabled:1\r\naof_last_write_status:err\r\n".utf8)))
    #expect(facts.weaknesses == [.cannotWrite])
  }

  @Test func silentServerTimesOutAndALaterRequestSucceeds() throws {
    let server = try QueueServer()
    let connection = try RedisConnection(RedisURL(server.url), timeoutS: 3, respiteMs: 0)
    #expect(try connection.ask(["PING"], to: "ping") == .bytes(Array("PONG".utf8)))
    server.freeze()
    let failure = #expect(throws: Failure.self) { try connection.ask(["PING"], to: "ping") }
    #expect(failure?.description.contains("no answer within 3 s") == true)
    server.thaw()
    // The client discards the late answer.
    #expect(try connection.ask(["ECHO", "again"], to: "ping") == .bytes(Array("again".utf8)))
  }

  @Test func callerBehindATimeoutFailsSooner() throws {
    let server = try QueueServer()
    let connection = try RedisConnection(RedisURL(server.url), timeoutS: 3, respiteMs: 3_600_000)
    #expect(try connection.ask(["PING"], to: "ping").text == "PONG")
    server.freeze()
    #expect(throws: Failure.self) { try connection.ask(["PING"], to: "ping") }
    server.thaw()
    // The client sends no request.
    let failure = #expect(throws: Failure.self) { try connection.ask(["PING"], to: "ping") }
    #expect(failure?.description.contains("no answer within 3 s") == true)
  }

  @Test func writeToAClosedConnectionDoesNotEndTheProcess() throws {
    let server = try QueueServer()
    let connection = try RedisConnection(RedisURL("unix://\(server.socket)"))
    #expect(try connection.ask(["PING"], to: "ping").text == "PONG")
    server.kill()
    // SIGPIPE has its default action, as in a program that does not change it.
    let defaultValue = signal(SIGPIPE, SIG_DFL)
    defer { signal(SIGPIPE, defaultValue) }
    var (broken, before) = (sigset_t(), sigset_t())
    sigemptyset(&broken)
    sigaddset(&broken, SIGPIPE)
    pthread_sigmask(SIG_UNBLOCK, &broken, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    let failure = #expect(throws: Failure.self) { try connection.ask(["PING"], to: "ping") }
    #expect(failure?.description.contains("Broken pipe") == true)
  }

  @Test func argumentsAreSentAndReceivedByteForByte() throws {
    let server = try QueueServer()
    let connection = try RedisConnection(RedisURL(server.url))
    let word = "a\0b \r\n\"%s ü"
    #expect(try connection.ask(["ECHO", word], to: "ping").text == word)
    #expect(try connection.ask(["ECHO", ""], to: "ping").text == "")
    #expect(
      try connection.ask(["EVAL", "return {1, {'a', false}, redis.error_reply('NOT so')}", "0"], to: "ask")
        == .list([.integer(1), .list([.bytes([97]), .nothing]), .refusal("NOT so")]))
  }

  /// The bounds of a reply leave much room for honest ones.
  @Test func largestHonestRepliesAreASmallPartOfTheBound() throws {
    let server = try QueueServer()
    let info = try RedisConnection(RedisURL(server.url)).ask(["INFO"], to: "ask").text ?? ""
    #expect((1_000..<RedisReplyReader.maximumBytes / 50).contains(info.utf8.count))
    let (one, two) = (try stream(server.url), "two")
    #expect(try one.add((10..<26).map { "\($0)" + String(repeating: "x", count: 1_022) }) == 16)
    for _ in 0..<16 {
      let entry = try #require(try one.next())
      // Redis delivers the entry, as in a lost reply.
      try server.command("XCLAIM", "encoder-worker", "encoder-worker", two, "0", entry.id)
    }
    let other = try RedisStream(
      RedisURL(server.url), consumer: two, store: "s3://test/", lease: 60, allowsNonDurable: false, warn: { _ in })
    let taken = try other.takeOver()
    #expect(taken.count == 16 && taken.reduce(0) { $0 + $1.name.utf8.count } < RedisReplyReader.maximumBytes / 50)
  }

  @Test func keyOfAnotherTypeIsNotChanged() throws {
    let server = try QueueServer()
    try server.command("SET", "encoder-worker", "mine")
    let refusal = #expect(throws: Failure.self) { try stream(server.url) }
    #expect(refusal?.description.contains("choose another one with ?stream=NAME") == true)
    #expect(try server.command("GET", "encoder-worker") == ["mine"])
  }

  @Test func workerWithoutAQueueNeedsNoClientLibrary() throws {
    #expect(try Tool.run("ldd", [EncoderWorker.path]).text.contains("libavcodec"))
    #expect(try !Tool.run("ldd", [EncoderWorker.path]).text.contains("hiredis"))
    let missing = Failure.missingLibrary("hiredis", "no such file", package: "libhiredis0.14")
    #expect(missing.description.contains("Debian: libhiredis0.14"))
  }
}
