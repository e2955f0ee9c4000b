import FileSystem
import Foundation
import Synchronization
import TestSupport
import Testing
import WorkQueues

@testable import JSON
@testable import Remote

/// A queue of SQS: messages, their forms, leases and attempts. The promises of every queue are in `QueueContractTests`.
@Suite(.enabled(if: StoreServer.isInstalled, "\(StoreServer.reason)"))
struct SQSQueueTests {
  private final class Clock: Sendable {
    private let aheadMs = Mutex(0)
    var now: Int { MonotonicClock.milliseconds() + aheadMs.withLock { $0 } }
    func advance(seconds: Int) { aheadMs.withLock { $0 += 1_000 * seconds } }
  }

  private let store: StoreServer
  private let objects = MemoryObjects()
  private let clock = Clock()
  private static let place = ObjectPlace(bucket: "replay", prefix: "prod/")

  init() throws { store = try StoreServer.shared.get() }

  private func client(
    _ address: String, of store: StoreServer? = nil, _ changes: [String: String] = [:]
  ) throws -> SQSClient {
    let environment = (store ?? self.store).environment.merging(changes) { $1 }
    return try SQSClient(SQSAddress(address), AWSSettings(environment: { environment[$0] }), pauseMs: 1)
  }

  private func worker(
    _ queue: MessageQueue, address: String? = nil, role: QueueRole = .worker(drains: false), lease: Int = 3_600,
    warn: @escaping @Sendable (String) -> Void = { _ in }
  ) throws -> SQSQueue {
    try SQSQueue(
      client(address ?? queue.address), objects: objects, place: Self.place, role: role, lease: lease, waitS: 0,
      clock: { [clock] in clock.now }, warn: warn)
  }

  private func notification(_ keys: String..., bucket: String = "replay") -> String {
    let records = keys.map { key in
      JSONValue.object([
        "eventSource": .string("aws:s3"), "eventName": .string("ObjectCreated:Put"),
        "s3": .object([
          "bucket": .object(["name": .string(bucket)]),
          "object": .object(["key": .string(PercentEncoding.encoded(key))]),
        ]),
      ])
    }
    return JSONValue.object(["Records": .array(records)]).line
  }

  private func names(of worker: SQSQueue) throws -> [String] {
    var names: [String] = []
    while let claim = try worker.next() {
      names.append(claim.name)
      try worker.acknowledge(claim)
    }
    return names
  }

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
      let all = (0..<23).map { "s\($0)@1.tar" } + ["{brace", " blank ", "line\nend", "tab\u{1}", "ü/ö 100%+.tar"]
      #expect(try worker.add(all) == all.count)
      #expect(try queue.counts().waiting == all.count)
      #expect(try names(of: worker).sorted() == all.sorted(), "FIFO: \(isFIFO)")
      // A name that is finished may come again at once.
      #expect(try worker.add(["s0@1.tar"]) == 1 && names(of: worker) == ["s0@1.tar"])
    }
    let worker = try worker(try MessageQueue(store))
    #expect(throws: UnusableBatchName.self) { try worker.add(["fine", ""]) }
    #expect(throws: UnusableBatchName.self) { try worker.add([String(repeating: "x", count: 1_025)]) }
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

  // MARK: leases

  @Test func renewedMessageStaysWithItsHolder() throws {
    let queue = try MessageQueue(store)
    try queue.send("a")
    let one = try worker(queue, lease: 10)
    let claim = try #require(try one.next())
    let two = try worker(queue)
    // Longer than the lease. The message is hidden all the time, or the other worker gets it.
    let endMs = MonotonicClock.milliseconds() + 13_000
    while MonotonicClock.milliseconds() < endMs {
      #expect(try two.next() == nil)
      usleep(200_000)
    }
    #expect(try one.holds(claim.id) && one.renew(claim))
    try one.acknowledge(claim)
    #expect(try queue.counts() == (0, 0))
  }

  @Test func messageThatNobodyRenewedIsSetAsideForATakeover() throws {
    let queue = try MessageQueue(store)
    try queue.send("a", "b")
    let one = try worker(queue)
    let lost = [try #require(try one.next()), try #require(try one.next())]
    clock.advance(seconds: 3_601)
    try queue.loseVisibility()
    let two = try worker(queue)
    try queue.send("new")
    #expect(try two.next()?.name == "new" && two.next() == nil)
    let taken = try two.takeOver()
    #expect(taken.map(\.name).sorted() == ["a", "b"] && taken.allSatisfy { $0.attempt == 1 })
    #expect(lost.allSatisfy { !one.holds($0.id) } && one.heldCount == 0 && two.heldCount == 3)
    // A worker that stops before it begins hands them back.
    for claim in taken { try two.handBack(claim) }
    let three = try worker(queue)
    #expect(try three.next() == nil && three.takeOver().map(\.attempt) == [1, 1])
  }

  @Test func deliveriesThatAreNoAttemptsDoNotCount() throws {
    let queue = try MessageQueue(store)
    try queue.send("a")
    // Somebody looks at the message, again and again.
    for _ in 0..<8 { #expect(try queue.receive(hidingFor: 0).count == 1) }
    let one = try worker(queue)
    #expect(try one.next() == nil)
    let found = try #require(try one.takeOver().first)
    let begun = try #require(try one.begin(found))
    #expect(begun.attempt == 2)
    // Then the service is restarted, again and again.
    var claim = begun
    for _ in 0..<5 {
      try one.handBack(claim)
      #expect(try one.next() == nil)
      let again = try #require(try one.takeOver().first)
      claim = try #require(try one.begin(again))
      #expect(claim.attempt == 2)
    }
    try one.acknowledge(claim)
    #expect(objects.keys.isEmpty)
  }

  @Test func batchThatIsHandedBackIsNotSetAside() throws {
    let queue = try MessageQueue(store)
    try queue.send("a")
    let one = try worker(queue)
    for _ in 0..<4 {
      let claim = try #require(try one.next())
      #expect(claim.attempt == 1 && claim.failures == 0)
      try one.handBack(claim)
    }
    // A worker that dies with it counts.
    _ = try #require(try one.next())
    clock.advance(seconds: 3_601)
    try queue.loseVisibility()
    #expect(try one.next() == nil && one.takeOver().map(\.attempt) == [1])
  }

  @Test func storeThatDoesNotAnswerCostsNoAttempt() throws {
    let queue = try MessageQueue(store)
    try queue.send("a")
    _ = try queue.receive(hidingFor: 0)
    let failing = StoppingObjects(objects, after: 0, failures: 5)
    let worker = try SQSQueue(
      client(queue.address), objects: failing, place: Self.place, role: .worker(drains: false), lease: 3_600, waitS: 0,
      warn: { _ in })
    for _ in 0..<5 { #expect(throws: StoppingObjects.Stopped.self) { try worker.next() } }
    #expect(try queue.counts() == (0, 1))
    #expect(try worker.next() == nil && worker.takeOver().map(\.attempt) == [1])
  }

  @Test func lostAnswersLoseNoMessage() throws {
    let store = try StoreServer()
    let queue = try MessageQueue(store)
    let worker = try SQSQueue(
      client(queue.address, of: store), objects: objects, place: Self.place, role: .worker(drains: false),
      lease: 3_600, waitS: 0, warn: { _ in })
    try queue.loseAnswers(2)
    // The queue has the names up to three times.
    #expect(try worker.add(["a", "b"]) == 2)
    #expect(try queue.counts().waiting == 6)
    var claims: [Claim] = []
    while let claim = try worker.next() { claims.append(claim) }
    #expect(claims.count == 6 && Set(claims.map(\.name)) == ["a", "b"])
    for claim in claims {
      try queue.loseAnswers(2)
      try worker.acknowledge(claim)
    }
    #expect(try queue.counts() == (0, 0))
  }

  // MARK: idle workers and drains

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
}
