import Foundation
import TestSupport
import Testing
import WorkQueues

@testable import Remote

/// The questions of `status` to a stream of Redis, which change nothing there.
@Suite(.enabled(if: QueueServer.isInstalled, "redis-server is not there; scripts/setup test installs it"))
struct RedisStatusTests: RedisStreamSuite {
  let server: QueueServer

  init() throws { server = try QueueServer() }

  private func status(of store: String = "s3://test/") throws -> NameQueueStatus {
    try RedisStream.status(of: RedisURL(server.url), store: store)
  }

  @Test func missingStreamIsEmptyAndStaysMissing() throws {
    let status = try status()
    #expect(status.waiting == QueueDepth(count: 0, oldestMs: nil) && status.claimed == status.waiting)
    #expect(!status.isApproximate)
    #expect(try server.command("DBSIZE") == ["0"])
  }

  @Test func entriesWithoutAGroupWaitAndNoGroupIsMade() throws {
    try server.command("XADD", "encoder-worker", "1000-0", "batch", "a")
    try server.command("XADD", "encoder-worker", "*", "batch", "b")
    let status = try status()
    #expect(status.waiting.count == 2 && status.waiting.oldestMs.map { $0 > 1_000_000_000_000 } == true)
    #expect(status.claimed.count == 0)
    #expect(try server.command("XINFO", "GROUPS", "encoder-worker").filter { !$0.isEmpty }.isEmpty)
    #expect(try server.command("DBSIZE") == ["1"])
  }

  @Test func waitingAndClaimedEntriesAreCountedWithTheirAges() throws {
    let one = try worker()
    _ = try one.add(["a", "b", "c", "d"])
    let (first, second) = (try take(one), try take(one))
    try one.acknowledge(first)
    let consumers = try server.command("XINFO", "CONSUMERS", "encoder-worker", "encoder-worker").count
    let now = try status()
    #expect(now.waiting.count == 2 && now.claimed.count == 1)
    for depth in [now.waiting, now.claimed] {
      #expect(depth.oldestMs.map { (0..<3_600_000).contains($0) } == true && !depth.isPartial)
    }
    #expect(try server.command("XINFO", "CONSUMERS", "encoder-worker", "encoder-worker").count == consumers)
    try one.acknowledge(second)
    _ = try take(one)
    _ = try take(one)
    #expect(try status().waiting == QueueDepth(count: 0, oldestMs: nil))
    #expect(try status().claimed.count == 2)
    one.leave()
  }

  @Test func otherStoreAndOtherKeysAreErrors() throws {
    _ = try worker()
    let other = #expect(throws: (any Error).self) { try status(of: "s3://other/") }
    #expect(other.map { "\($0)".contains("is of the store s3://test/, not of s3://other/") } == true)
    try server.flush()
    try server.command("SET", "encoder-worker", "no stream")
    #expect(throws: (any Error).self) { try status() }
    #expect(try server.command("DBSIZE") == ["1"])
  }

  /// Another server may say anything.
  @Test func repliesOutOfBoundsAreClampedOrRefused() throws {
    func reply(_ now: String, _ waiting: RedisReply, _ first: String, store: String = "") -> RedisReply {
      func text(_ text: String) -> RedisReply { .bytes(Array(text.utf8)) }
      return .list([text(store), text(now), waiting, text(first), .integer(0), text("")])
    }
    let good = try #require(reply("2000", .integer(3), "500-0").streamStatus)
    #expect(good.1.waiting == QueueDepth(count: 3, oldestMs: 1_500) && good.1.claimed.oldestMs == nil)
    let large = try #require(reply("\(Int64.max)", .integer(.max), "\(Int64.max)-0").streamStatus)
    #expect(large.1.waiting == QueueDepth(count: 1 << 40, oldestMs: 0))
    #expect(reply("\(Int64.min)", .integer(-3), "7-0").streamStatus?.1.waiting == QueueDepth(count: 0, oldestMs: nil))
    // More than 63 bits.
    #expect(reply("5", .integer(1), "\(UInt64.max)-0").streamStatus?.1.waiting.oldestMs == nil)
    for bad in [
      reply("now", .integer(1), "7-0"), reply("5", .nothing, "7-0"), reply("5", .integer(1), "x"), .list([]), .nothing,
      .integer(1),
    ] {
      #expect(bad.streamStatus == nil)
    }
  }
}

/// The question of `status` to SQS.
@Suite(.enabled(if: StoreServer.isInstalled, Comment(rawValue: StoreServer.reason)))
struct SQSStatusTests: SQSSuite {
  let store: StoreServer
  let objects = MemoryObjects()
  let clock = TestClock()

  init() throws { store = try StoreServer.shared.get() }

  @Test func messagesAreCountedAndNoneIsReceived() throws {
    let queue = try MessageQueue(store)
    try queue.send("a", "b", "c")
    #expect(try queue.receive().count == 3)
    try queue.loseVisibility()
    let client = try client(queue.address)
    let status = try SQSQueue.status(of: client)
    #expect(status.waiting == QueueDepth(count: 3, oldestMs: nil) && status.claimed.count == 0 && status.isApproximate)
    #expect(try queue.counts() == (3, 0))
    _ = try queue.receive()
    #expect(try SQSQueue.status(of: client).claimed.count == 3)
    #expect(throws: SQSError.self) { try SQSQueue.status(of: self.client("sqs://nowhere-\(UUID().uuidString)")) }
  }
}
