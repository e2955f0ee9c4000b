import FileSystem
import Foundation
import FrameBatches
import JSON
import SegmentEncoder
import Sessions
import Synchronization
import TestSupport
import Testing

@testable import WorkQueues

/// The promises of every queue (`BatchQueue`), each stated once. The suites of the spool, the object queue and Redis test what only
/// they do.
@Suite struct QueueContractTests {
  private static let bytes = Array("a batch".utf8)

  @Test(.enabled(if: QueueServer.isInstalled, "there is no redis-server: scripts/setup test"))
  func redisIsAmongTheQueues() { #expect(QueueKind.installed.contains(.redis)) }

  @Test(.enabled(if: StoreServer.isInstalled, "\(StoreServer.reason)"))
  func sqsIsAmongTheQueues() { #expect(QueueKind.installed.contains(.sqs)) }

  private func claim(_ queue: any BatchQueue) throws -> Claim {
    try #require(try queue.waiting().first.flatMap { try queue.claim($0) })
  }

  /// Has a new worker take over the claim, as if its holder were dead.
  private func takeOver(_ claim: Claim, by name: String, _ backend: any QueueBackend) throws -> (any BatchQueue, Claim)
  {
    let worker = try backend.worker(name)
    try backend.expire(claim, for: name)
    let (claims, failures) = try worker.takeOver()
    #expect(failures.isEmpty && claims.count == 1)
    return (worker, try #require(claims.first))
  }

  private func contents(of claim: Claim, in queue: any BatchQueue) throws -> [UInt8]? {
    guard case .batch(let batch) = try queue.fetch(claim) else { return nil }
    defer { batch.discard() }
    return try DurableFile.contents(of: batch.path, limit: 1 << 20)
  }

  private static func depth(_ queue: any BatchQueue) throws -> (waiting: Int, claimed: Int) {
    switch try queue.status(output: "output") {
    case .spool(let status): (status.waiting.count, status.claimed.count)
    case .counts(let waiting, let claimed): (waiting, claimed)
    }
  }

  private let reason = BadBatch("decode", "0001.jpg", "invalid data", advice: "see the file")

  // MARK: claims

  @Test(arguments: QueueKind.installed) func batchIsOwedUntilItIsRetired(kind: QueueKind) throws {
    let backend = try kind.backend()
    let (one, two) = (try backend.worker("one"), try backend.worker("two"))
    #expect(try one.owed(limit: 10).isEmpty)
    for name in ["a", "b"] { try backend.add(name, Self.bytes) }
    let first = try claim(one)
    #expect(try two.owed(limit: 10).sorted() == ["a", "b"])
    #expect(try two.owed(limit: 1).count == 1)
    guard case .batch(let batch) = try one.fetch(first) else { return #expect(Bool(false), "no batch") }
    try one.retire(batch.claim, [], keep: false)
    #expect(try two.owed(limit: 10) == ["a", "b"].filter { $0 != first.name })
    try two.announce(key: "key", event: "{}")
  }

  @Test(arguments: QueueKind.installed) func addedBatchIsClaimedOnceWithItsBytes(kind: QueueKind) throws {
    let backend = try kind.backend()
    let (one, two) = (try backend.worker("one"), try backend.worker("two"))
    #expect(try one.waiting().isEmpty && Self.depth(one) == (0, 0))
    let names = ["a", "b ü.tar"]
    for name in names { try backend.add(name, Array(name.utf8)) }
    let seen = try two.waiting()
    #expect(try seen.count == 2 && Self.depth(two) == (2, 0))
    let claims = try one.waiting().compactMap { try one.claim($0) }
    #expect(claims.map(\.name).sorted() == names)
    #expect(try seen.allSatisfy { try two.claim($0) == nil })
    #expect(try one.waiting().isEmpty && two.waiting().isEmpty && Self.depth(two) == (0, 2))
    for claim in claims {
      #expect(claim.attempt == 1 && claim.failures == 0 && !one.hasLost(claim))
      // A discarded copy is fetched again.
      for _ in 0..<2 { #expect(try contents(of: claim, in: one) == Array(claim.name.utf8)) }
    }
    #expect(try two.takeOver().claims.isEmpty)
  }

  @Test(arguments: QueueKind.installed) func threadsOfTwoWorkersClaimEachBatchOnce(kind: QueueKind) throws {
    let backend = try kind.backend()
    let names = (0..<60).map { "\($0)" }
    for name in names { try backend.add(name, Self.bytes) }
    let workers = [try backend.worker("one"), try backend.worker("two")]
    let taken = Mutex<[String]>([])
    let failures = Mutex<[String]>([])
    let threads = ThreadGroup()
    for number in 0..<6 {
      let worker = workers[number % 2]
      try threads.start {
        do {
          while true {
            let entries = try worker.waiting()
            if entries.isEmpty { return }
            for entry in entries {
              guard let claim = try worker.claim(entry) else { continue }
              taken.withLock { $0.append(claim.name) }
              try worker.retire(claim, [], keep: false)
            }
          }
        } catch { failures.withLock { $0.append("\(error)") } }
      }
    }
    threads.join()
    #expect(failures.withLock { $0 } == [])
    #expect(taken.withLock { $0.sorted() } == names.sorted())
    #expect(try Self.depth(workers[0]) == (0, 0) && backend.files("incoming").isEmpty)
  }

  @Test(arguments: QueueKind.installed) func batchThatIsHandedBackWaitsAgain(kind: QueueKind) throws {
    let backend = try kind.backend()
    let (one, two) = (try backend.worker("one"), try backend.worker("two"))
    try backend.add("a", Self.bytes)
    let first = try claim(one)
    try one.handBack(first)
    #expect(one.hasLost(first))
    let second = try claim(two)
    #expect(second.name == "a" && second.attempt == 1)
    #expect(try contents(of: second, in: two) == Self.bytes)
    #expect(try one.waiting().isEmpty)
  }

  // MARK: outcomes

  @Test(arguments: QueueKind.installed, [false, true])
  func retiredBatchIsGoneOrKept(kind: QueueKind, keep: Bool) throws {
    let backend = try kind.backend()
    let one = try backend.worker("one")
    try backend.add("a", Self.bytes)
    try one.retire(try claim(one), [], keep: keep)
    #expect(try Self.depth(one) == (0, 0) && backend.files("incoming").isEmpty && backend.files("quarantine").isEmpty)
    #expect(try backend.files("done") == (keep ? ["a": Self.bytes] : [:]))
    #expect(try backend.worker("two").takeOver().claims.isEmpty)
  }

  @Test(arguments: QueueKind.installed) func quarantinedBatchKeepsItsBytesBesideItsReason(kind: QueueKind) throws {
    let backend = try kind.backend()
    let one = try backend.worker("one")
    let batches = [Self.bytes, Array("another of the same name".utf8)]
    for bytes in batches {
      try backend.add("a", bytes)
      let name = try one.quarantine(try claim(one), reason)
      let files = try backend.files("quarantine")
      #expect(files[name] == bytes)
      let report = try JSONParser.parse(try #require(files[name + ".reason.json"])).object
      #expect(report?["cause"]?.string == "invalid data")
    }
    #expect(try backend.files("quarantine").count == 4)
    #expect(try Self.depth(one) == (0, 0) && backend.files("incoming").isEmpty)
  }

  /// An operator accepts what a batch loses. The next workers know it, whoever holds the batch, until it is finished.
  @Test(arguments: QueueKind.installed) func acceptedBatchIsKnownAfterARetryAndATakeover(kind: QueueKind) throws {
    let backend = try kind.backend()
    let one = try backend.worker("one")
    try backend.add("a", Self.bytes)
    var lossy = reason
    let mark = String(repeating: "a1", count: 32)
    lossy.marks = [mark]
    let name = try one.quarantine(try claim(one), lossy)
    let report = try #require(try backend.files("quarantine")[name + ".reason.json"])
    #expect(String(decoding: report, as: UTF8.self).contains("--accept"))
    #expect(try !one.isAccepted(mark))
    #expect(try backend.retry(name, accepting: true) == "a")
    #expect(try backend.files("quarantine").isEmpty)
    let (two, taken) = try takeOver(try claim(one), by: "two", backend)
    #expect(try contents(of: taken, in: two) == Self.bytes)
    #expect(try two.isAccepted(mark) && !two.isAccepted(String(repeating: "b", count: 64)))
    try two.retire(taken, [], keep: false)
    #expect(try Self.depth(two) == (0, 0) && backend.files("incoming").isEmpty)
  }

  /// A batch of which nothing can be published is not accepted, and stays.
  @Test(arguments: QueueKind.installed) func otherBatchIsNotAccepted(kind: QueueKind) throws {
    let backend = try kind.backend()
    let one = try backend.worker("one")
    try backend.add("a", Self.bytes)
    let name = try one.quarantine(try claim(one), reason)
    #expect(throws: Failure.self) { try backend.retry(name, accepting: true) }
    #expect(try backend.files("quarantine").count == 2)
    #expect(try backend.retry(name, accepting: false) == "a")
    #expect(try contents(of: claim(one), in: one) == Self.bytes)
  }

  // MARK: workers die

  @Test(arguments: QueueKind.installed) func claimOfADeadWorkerIsTakenOverOnceAndItsAttemptsCount(kind: QueueKind)
    throws
  {
    let backend = try kind.backend()
    let one = try backend.worker("one")
    try backend.add("a", Self.bytes)
    let failed = try one.fail(try claim(one))
    #expect(failed.failures == 1 && failed.attempt == 1)
    let (two, second) = try takeOver(failed, by: "two", backend)
    #expect(second.name == "a" && second.attempt == 1 && second.failures == 1)
    #expect(try two.takeOver().claims.isEmpty && one.takeOver().claims.isEmpty)
    let begun = try #require(try two.begin(second))
    #expect(begun.attempt == 2)
    let (three, third) = try takeOver(begun, by: "three", backend)
    #expect(third.attempt == 2 && third.failures == 1)
    #expect(try contents(of: third, in: three) == Self.bytes)
    // A finished batch, which waits only for the delivery of its event, starts with its first attempt again.
    let forgiven = try three.forgive(try #require(try three.begin(third)))
    #expect(forgiven.attempt == 1)
    #expect(try takeOver(forgiven, by: "four", backend).1.attempt == 1)
  }

  enum Step: CaseIterable { case begin, fail, handBack, forgive, announce, quarantine }

  @Test(arguments: QueueKind.installed, Step.allCases)
  func workerThatLostItsClaimChangesNothing(kind: QueueKind, step: Step) throws {
    let backend = try kind.backend()
    let one = try backend.worker("one")
    try backend.add("a", Self.bytes)
    var lost = try claim(one)
    // Only a claim with deaths is forgiven.
    if step == .forgive { lost = try #require(try one.begin(lost)) }
    let (two, taken) = try takeOver(lost, by: "two", backend)
    switch step {
    case .begin: #expect(try one.begin(lost) == nil)
    // The others may throw, or do nothing.
    case .fail: _ = try? one.fail(lost)
    case .handBack: try? one.handBack(lost)
    case .forgive: #expect(throws: (any Error).self) { try one.forgive(lost) }
    case .announce:
      if one.takesEvents { #expect(throws: Cancelled.self) { try one.announce(lost, key: "k", event: "{}") } }
    case .quarantine: #expect(throws: (any Error).self) { try one.quarantine(lost, reason) }
    }
    #expect(one.hasLost(lost) && !two.hasLost(taken))
    #expect(try backend.files("quarantine").isEmpty && Self.depth(two) == (0, 1))
    #expect(try contents(of: taken, in: two) == Self.bytes)
    let begun = try #require(try two.begin(taken))
    #expect(begun.attempt == lost.attempt + 1 && begun.failures == 0)
    try two.retire(begun, [], keep: false)
    #expect(try Self.depth(two) == (0, 0) && backend.files("incoming").isEmpty)
  }

  @Test(arguments: QueueKind.installed) func workerThatLeavesTakesNothingWithIt(kind: QueueKind) throws {
    let backend = try kind.backend()
    let (one, two) = (try backend.worker("one"), try backend.worker("two"))
    for name in ["a", "b"] { try backend.add(name, Self.bytes) }
    try one.handBack(try claim(one))
    one.leave()
    #expect(try Self.depth(two) == (2, 0))
    for _ in 0..<2 { try two.retire(try claim(two), [], keep: false) }
    #expect(two.fault == nil)
    #expect(try backend.files("incoming").isEmpty)
  }
}
