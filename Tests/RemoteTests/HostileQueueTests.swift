import FileSystem
import SegmentEncoder
import Synchronization
import TestSupport
import Testing
import WorkQueues

@testable import Remote

/// Tests the client of SQS against a server that sends wrong or no responses.
@Suite struct HostileQueueTests {
  private let server: StoreServer
  private let objects = MemoryObjects()

  init() throws { server = try StoreServer("hostile_sqs.py") }

  private func client(
    _ kind: String, timeoutS: Int = 600, isOverdue: @escaping @Sendable () -> Bool = { false }
  ) throws -> SQSClient {
    let environment = server.environment
    // Tests count requests, so a slow machine must not cause a timeout.
    return try SQSClient(
      SQSAddress("\(server.endpoint)/000000000000/\(kind)"), AWSSettings(environment: { environment[$0] }),
      timeoutS: timeoutS, pauseMs: 1, isOverdue: isOverdue)
  }

  private func worker(_ kind: String, timeoutS: Int = 600) throws -> SQSQueue {
    try SQSQueue(
      client(kind, timeoutS: timeoutS), objects: objects, place: ObjectPlace(bucket: "replay", prefix: ""),
      role: .worker(drains: false), lease: 3_600, waitS: 0, warn: { _ in })
  }

  @Test func transientFailureIsRetried() throws {
    for kind in ["busy-1", "busy-4"] { #expect(try worker(kind).next() == nil) }
    let error = #expect(throws: SQSError.self) { try worker("busy-5").next() }
    #expect(error?.status == 503 && error?.code == "ServiceUnavailable")
  }

  @Test(arguments: [400, 403, 429, 500, 503]) func lastingFailureIsOneOfTheEnvironment(status: Int) throws {
    let error = try #require(throws: SQSError.self) { try worker("status-\(status)") }
    #expect(error.status == status && error.code == "Code\(status)" && error.operation == "GetQueueAttributes")
    #expect(error.description.contains("told\\nso") && error.description.contains("/000000000000/status-\(status)"))
    #expect(Disposition(of: error, batch: "b") == .retry)
  }

  @Test(arguments: ["garbage", "gone", "large", "endless", "stall"])
  func replyThatIsNoneThrows(kind: String) throws {
    #expect {
      try worker(kind, timeoutS: kind == "stall" ? 1 : 600).next()
    } throws: {
      ($0 as? any ClassifiedError)?.kind == .environment
    }
  }

  @Test(arguments: 0..<7) func messageThatIsNoneThrows(number: Int) throws {
    let worker = try worker("odd-\(number)")
    let error = #expect(throws: SQSError.self) { try worker.next() }
    #expect(error?.cause == "an unknown reply" && worker.heldCount == 0)
  }

  @Test(arguments: 0..<4) func countOfDeliveriesThatIsNoNumberIsOne(number: Int) throws {
    let claim = try #require(try worker("count-\(number)").next())
    #expect(claim.name == "c" && claim.attempt == 1)
  }

  @Test func messageThatIsDeliveredTwiceIsHeldTwice() throws {
    let worker = try worker("same")
    let (first, second) = (try #require(try worker.next()), try #require(try worker.next()))
    #expect(first.id != second.id && first.name == second.name && worker.heldCount == 2)
    // The reply is none to this action, and does not matter.
    try worker.acknowledge(first)
    #expect(!worker.holds(first.id) && worker.holds(second.id))
  }

  @Test func messagesWithoutABatchEndACallAtLast() throws {
    #expect(try worker("empty").next() == nil)
  }

  @Test func uselessMessagesDoNotFillTheLog() throws {
    let lines = Mutex<[String]>([])
    let nowMs = Atomic(0)
    let queue = try SQSQueue(
      client("junk"), objects: objects, place: ObjectPlace(bucket: "replay", prefix: ""), role: .worker(drains: false),
      lease: 3_600, waitS: 0, clock: { nowMs.load(ordering: .relaxed) },
      warn: { line in lines.withLock { $0.append(line) } })
    #expect(try queue.next() == nil)
    #expect(lines.withLock { $0.count == 60 && $0.allSatisfy { $0.utf8.count < 600 } })
    // A minute later, the next warning counts those that were left out.
    nowMs.store(60_000, ordering: .relaxed)
    #expect(try queue.next() == nil)
    #expect(lines.withLock { $0.count == 120 && $0[60].hasSuffix("140 more warnings of its messages are left out") })
  }

  @Test func eachMessageIsSentUntilTheQueueHasIt() throws {
    #expect(try worker("partly").add(["a", "b", "c"]) == 3)
    // One a call, and at most so many calls for the same ten.
    #expect(throws: SQSError.self) { try worker("partly").add((0..<10).map { "\($0)" }) }
    #expect(throws: SQSError.self) { try worker("silent").add(["a"]) }
    let refused = #expect(throws: SQSError.self) { try worker("refusing").add(["a"]) }
    #expect(refused?.code == "InvalidMessageContents" && refused?.cause == "no")
  }

  @Test func renewalWithoutAnOutcomeKeepsTheClaimUntilItsLeaseEnds() throws {
    let worker = try worker("same")
    let claim = try #require(try worker.next())
    #expect(try worker.renew(claim))
  }

  @Test func stopEndsARequest() throws {
    let isOverdue = Mutex(false)
    let client = try client("stall") { isOverdue.withLock { $0 } }
    let queue = try SQSQueue(
      client, objects: objects, place: ObjectPlace(bucket: "replay", prefix: ""), role: .worker(drains: false),
      lease: 3_600, waitS: 0, warn: { _ in })
    isOverdue.withLock { $0 = true }
    #expect(throws: Cancelled.self) { try queue.next() }
  }

  @Test func unreachableQueueThrowsARetryableError() throws {
    let worker = try worker("same")
    server.stop()
    let error = try #require(throws: SQSError.self) { try worker.next() }
    #expect(error.status == nil && error.advice.contains("network"))
    #expect(Disposition(of: error, batch: "b") == .retry)
  }
}
