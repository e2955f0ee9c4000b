import FileSystem
import Foundation
import FrameBatches
import Synchronization
import TestSupport
import Testing
import WorkQueues

@testable import JSON
@testable import Remote

/// Messages of a queue of SQS, and their forms. The promises of every queue are in `QueueContractTests`.
@Suite(.enabled(if: StoreServer.isInstalled, "\(StoreServer.reason)"))
struct SQSQueueTests: SQSSuite {
  let store: StoreServer
  let objects = MemoryObjects()
  let clock = TestClock()

  init() throws { store = try StoreServer.shared.get() }

  @Test func eachFormOfAMessageNamesItsBatch() throws {
    let queue = try MessageQueue(store)
    let wrapped = JSONValue.object([
      "Type": .string("Notification"), "Message": .string(notification("prod/incoming/topic.tar")),
    ]).line
    try queue.send(
      "plain@1.tar", " ends with a blank \n", #"{"batch": "json@1.tar"}"#, notification("prod/incoming/a ü.tar"),
      wrapped, #"{"Service":"Amazon S3","Event":"s3:TestEvent","Bucket":"replay"}"#)
    let worker = try worker(queue)
    let expected = ["plain@1.tar", "ends with a blank", "json@1.tar", "a ü.tar", "topic.tar"]
    #expect(try names(of: worker).sorted() == expected.sorted())
    #expect(try queue.counts() == (0, 0))
  }

  @Test func addedNamesComeBackAsTheyAre() throws {
    for isFIFO in [false, true] {
      let queue = try MessageQueue(store, isFIFO: isFIFO)
      let worker = try worker(queue)
      let all =
        (0..<23).map { "s\($0)@1.tar" } + [
          "{brace", " blank ", "line\nend", "tab\u{1}", "a\u{FFFF}", "\u{FFFE}b", "ü/ö 100%+.tar",
        ]
      #expect(try worker.add(all) == all.count)
      #expect(try queue.counts().waiting == all.count)
      #expect(try names(of: worker).sorted() == all.sorted(), "FIFO: \(isFIFO)")
      // A name that is finished may come again at once.
      #expect(try worker.add(["s0@1.tar"]) == 1 && names(of: worker) == ["s0@1.tar"])
    }
    let worker = try worker(try MessageQueue(store))
    #expect(throws: Failure.self) { try worker.add(["fine", ""]) }
    #expect(throws: Failure.self) { try worker.add([String(repeating: "x", count: 1_025)]) }
  }

  @Test func traceOfAMessageComesWithItsClaimAndStays() throws {
    let queue = try MessageQueue(store)
    let one = try worker(queue)
    let trace = try #require(TraceParent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"))
    #expect(try one.add(["a"], traceParent: trace) == 1)
    let claim = try #require(try one.next())
    #expect(claim.traceParent == trace)
    try one.handBack(claim)
    #expect(try one.next()?.traceParent == trace)
    _ = try one.add(["b"])
    #expect(try one.next()?.traceParent == nil)
  }

  @Test func batchesOfASessionAreInOneGroupOfAFIFOQueue() throws {
    let queue = try MessageQueue(store, isFIFO: true)
    let one = try worker(queue)
    _ = try one.add(["a@1.tar", "a@2.tar", "b@1.tar"])
    let first = try #require(try one.next())
    #expect(try first.name == "a@1.tar" && one.next()?.name == "b@1.tar" && one.next() == nil)
    try one.acknowledge(first)
    #expect(try one.next()?.name == "a@2.tar")
  }

  @Test func messageWithManyBatchesBecomesOneForEach() throws {
    let queue = try MessageQueue(store)
    try queue.send(notification("prod/incoming/a", "prod/incoming/b", "prod/output/s/session.json", "prod/incoming/c"))
    let (one, two) = (try worker(queue), try worker(queue))
    let claims = [try #require(try one.next()), try #require(try two.next()), try #require(try one.next())]
    #expect(claims.map(\.name).sorted() == ["a", "b", "c"])
    #expect(try queue.counts() == (0, 3))
  }

  private static let useless = [
    "{}", "{broken", #"{"batch": ""}"#, #"{"Records": [{"eventName": "ObjectCreated:Put"}]}"#,
    String(repeating: "x", count: 1_025),
  ]

  @Test(arguments: [false, true]) func uselessMessageIsNeverRemovedInSilence(hasDeadLetters: Bool) throws {
    var attributes: [String: String] = [:]
    if hasDeadLetters {
      let dead = try MessageQueue(store)
      let target = try #require(try dead.attributes(["QueueArn"])["QueueArn"])
      attributes["RedrivePolicy"] = #"{"deadLetterTargetArn":"\#(target)","maxReceiveCount":"5"}"#
    }
    let queue = try MessageQueue(store, attributes)
    let lines = Mutex<[String]>([])
    let worker = try worker(queue) { line in lines.withLock { $0.append(line) } }
    let all = Self.useless + [notification("other/incoming/a"), notification("prod/incoming/a", bucket: "other")]
    for body in all { try queue.send(body: body) }
    try queue.send("good")
    #expect(try names(of: worker) == ["good"])
    #expect(try queue.counts() == (0, hasDeadLetters ? all.count : 0))
    let said = lines.withLock { $0 }
    #expect(said.count == all.count)
    for body in all {
      #expect(said.contains { $0.contains(body.prefix(20)) && $0.contains(hasDeadLetters ? "left to" : "removed") })
    }
  }

  @Test func notificationsOfOtherObjectsAreRemovedWithOneWarning() throws {
    let queue = try MessageQueue(store)
    let lines = Mutex<[String]>([])
    let worker = try worker(queue) { line in lines.withLock { $0.append(line) } }
    for number in 0..<3 { try queue.send(notification("prod/output/s/segment-\(number).mp4")) }
    // Each worker tries at its start what the store can do, with such an object.
    try queue.send(notification("prod/incoming/.host~1~2"))
    #expect(try names(of: worker) == [] && queue.counts() == (0, 0))
    #expect(lines.withLock { $0.count == 1 && $0[0].contains("prefix prod/incoming/") })
  }

  @Test func queueIsFoundByNameAccountAndURL() throws {
    let queue = try MessageQueue(store)
    try queue.send("a", "b", "c")
    for address in [queue.address, "sqs://123456789012/\(queue.name)", queue.url] {
      let worker = try worker(queue, address: address)
      let claim = try #require(try worker.next())
      try worker.acknowledge(claim)
      worker.leave()
    }
    #expect(try queue.counts() == (0, 0))
    let error = try #require(throws: SQSError.self) { try worker(queue, address: "sqs://\(queue.name)x") }
    #expect(error.description.contains("sqs://\(queue.name)x") && error.advice.contains("create the queue"))
  }

  @Test func wrongKeyIsReportedAsSuch() throws {
    let queue = try MessageQueue(store)
    let client = try client(queue.address, ["AWS_SECRET_ACCESS_KEY": "wrong"])
    let error = try #require(throws: SQSError.self) { try SQSActions(client) }
    #expect(error.code == "SignatureDoesNotMatch" && error.status == 403 && !error.description.contains("wrong"))
  }

  @Test func drainTriesSeveralTimesBeforeItTakesTheQueueForEmpty() throws {
    let queue = try MessageQueue(store)
    let worker = try worker(queue, role: .worker(drains: true))
    for _ in 0..<ReceiveHistory.emptyReceives {
      #expect(try worker.claimableCount() == 1 && worker.next() == nil)
    }
    #expect(try worker.claimableCount() == 0)
    // A batch that another worker puts back meanwhile.
    try queue.send("late")
    clock.advance(seconds: 2)
    #expect(try worker.claimableCount() == 1 && worker.next()?.name == "late")
    #expect(try worker.claimableCount() == 1)
  }

  @Test func drainOfAFIFOQueueEndsBehindABatchThatFailed() throws {
    let queue = try MessageQueue(store, isFIFO: true)
    let worker = try worker(queue, role: .worker(drains: true))
    _ = try worker.add(["a@1.tar", "a@2.tar"])
    // It failed, and waits for the end of the drain.
    let first = try #require(try worker.next())
    var receives = 0
    while try worker.claimableCount() > 0 {
      #expect(try worker.next() == nil)
      receives += 1
      try #require(receives < 10)
    }
    #expect(receives >= ReceiveHistory.emptyReceives)
    #expect(try queue.counts().waiting == 1)
    // A batch that ends lets go of the next one.
    try worker.acknowledge(first)
    #expect(try worker.claimableCount() == 1 && worker.next()?.name == "a@2.tar")
  }

  @Test func drainWaitsForDelayedMessages() throws {
    let queue = try MessageQueue(store, ["DelaySeconds": "900"])
    try queue.send("late")
    let worker = try worker(queue, role: .worker(drains: true))
    for _ in 0..<2 * ReceiveHistory.emptyReceives {
      #expect(try worker.claimableCount() == 1 && worker.next() == nil)
    }
  }

  @Test func recordsWithoutAUsableKeyAreToldOf() throws {
    let queue = try MessageQueue(store)
    let lines = Mutex<[String]>([])
    let worker = try worker(queue) { line in lines.withLock { $0.append(line) } }
    try queue.send(notification("prod/incoming/a", "", "prod/incoming/b"))
    #expect(try names(of: worker).sorted() == ["a", "b"] && queue.counts() == (0, 0))
    #expect(lines.withLock { $0.count == 1 && $0[0].contains("1 records without a usable key") })
  }
}
