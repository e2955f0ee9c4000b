import Encoding
import FileSystem
import Foundation
import FrameBatches
import JSON
import Sessions
import Synchronization
import TestSupport
import Testing
import WorkQueues

@testable import Remote

/// Tests claims and outcomes of batches.
@Suite(.enabled(if: QueueServer.isInstalled, "there is no redis-server: scripts/setup test"))
struct RedisStreamTests {
  private static let dead = "{encoder-worker}:dead"
  private static let batches = "{encoder-worker}:batches"
  private let server: QueueServer

  init() throws { server = try QueueServer() }

  private func worker(
    _ name: String = "one", lease: Int = 60, forgetAfter: Int = 3_600,
    warn: @escaping @Sendable (String) -> Void = { _ in }
  ) throws -> RedisStream {
    try RedisStream(
      RedisURL(server.url), consumer: name, store: "s3://test/", lease: lease, allowsNonDurable: false,
      forgetAfter: forgetAfter, warn: warn)
  }

  private func take(_ worker: RedisStream) throws -> RedisStream.Entry { try #require(try worker.next()) }

  /// Retries until a lease expires.
  private func takeOver(_ worker: RedisStream) throws -> [RedisStream.Entry] {
    try firstValue(of: "a worker takes entries over") {
      let entries = try worker.takeOver()
      return entries.isEmpty ? nil : entries
    }
  }

  /// Sets the idle time of an entry to one hour, as if no worker had renewed it.
  private func expire(_ entry: RedisStream.Entry, of worker: String) throws {
    try server.command(
      "XCLAIM", "encoder-worker", "encoder-worker", worker, "0", entry.id, "IDLE", "3600000", "JUSTID")
  }

  /// Seconds: a lease that a running worker with leases of one second always renews in time, even on a slow machine.
  private static let longLease = 4

  /// Returns a second worker that holds the entry, as if the first worker's lease had expired.
  private func takeOver(_ entry: RedisStream.Entry, by name: String = "two") throws -> (RedisStream, RedisStream.Entry)
  {
    // Redis delivers the entry, as in a lost reply. So the test need not wait for a lease.
    try server.command("XCLAIM", "encoder-worker", "encoder-worker", name, "0", entry.id)
    let other = try worker(name)
    return (other, try #require(try other.takeOver().first))
  }

  private func isEmpty() throws -> Bool {
    try server.command("XLEN", "encoder-worker") == ["0"] && server.command("HLEN", Self.batches) == ["0"]
  }

  /// The fields of the dead letters.
  private func deadLetters() throws -> [[String: String]] {
    let script = """
      local all = {}
      for _, entry in ipairs(redis.call('XRANGE', KEYS[1], '-', '+')) do
        local fields = {}
        for i = 1, #entry[2], 2 do fields[entry[2][i]] = string.gsub(entry[2][i + 1], '[^\\32-\\126]', '?') end
        all[#all + 1] = cjson.encode(fields)
      end
      return all
      """
    return try server.command("EVAL", script, "1", Self.dead).filter { !$0.isEmpty }.map {
      try JSONDecoder().decode([String: String].self, from: Data($0.utf8))
    }
  }

  // MARK: waiting, claimed, acknowledged

  @Test func addedEntriesAreClaimedInOrderAndRemovedWhenAcknowledged() throws {
    let worker = try worker()
    #expect(try worker.next() == nil)
    #expect(try worker.add(["a", "b/ü", "c"]) == 3)
    #expect(try worker.waitingCount() == 3)
    for name in ["a", "b/ü", "c"] {
      let entry = try take(worker)
      #expect(entry.name == name && entry.attempt == 1 && entry.failures == 0 && worker.holds(entry.id))
      try worker.acknowledge(entry)
    }
    #expect(try worker.next() == nil && worker.waitingCount() == 0 && isEmpty())
  }

  @Test func entryAddedWithXADDIsClaimed() throws {
    try server.command("XADD", "encoder-worker", "*", "more", "1", "batch", "incoming/a.tar")
    let worker = try worker()
    #expect(try worker.waitingCount() == 1)
    let entry = try take(worker)
    #expect(entry.name == "incoming/a.tar")
    #expect(try worker.add(["incoming/a.tar"]) == 0)
    try worker.acknowledge(entry)
    #expect(try isEmpty())
  }

  @Test func waitingBatchIsNotAddedAgain() throws {
    let (one, two) = (try worker("one"), try worker("two"))
    #expect(try one.add(["a", "b", "a"]) == 2)
    let entry = try take(one)
    #expect(try two.add(["a", "b", "c"]) == 1)
    try one.handBack(entry)
    #expect(try two.add(["a"]) == 0)
    while let entry = try two.next() { try two.acknowledge(entry) }
    #expect(try one.add(["a"]) == 1)
  }

  @Test(arguments: [["DEL", "encoder-worker"], ["XTRIM", "encoder-worker", "MAXLEN", "0"]])
  func entryRemovedByHandIsAddedAgain(_ command: [String]) throws {
    let worker = try worker()
    #expect(try worker.add(["a", "b"]) == 2)
    let held = try take(worker)
    _ = try Tool.output("redis-cli", ["-s", server.socket] + command)
    #expect(try worker.add(["a", "b", "c"]) == 3)
    try worker.acknowledge(held)
    #expect(try worker.waitingCount() == 3)
    #expect(try (0..<3).map { _ in try take(worker).name } == ["a", "b", "c"])
  }

  @Test func entryAddedTwiceByAProducerIsClaimedOnce() throws {
    for _ in 0..<3 { try server.command("XADD", "encoder-worker", "*", "batch", "a") }
    let worker = try worker()
    let entry = try take(worker)
    #expect(try worker.next() == nil && worker.waitingCount() == 0)
    try worker.acknowledge(entry)
    #expect(try isEmpty())
  }

  @Test func waitingAndClaimedBatchesAreCounted() throws {
    let (one, two) = (try worker("one"), try worker("two"))
    #expect(try one.add((0..<10).map { "batch-\($0)" }) == 10)
    for _ in 0..<3 { _ = try take(one) }
    for _ in 0..<2 { _ = try take(two) }
    #expect(try one.waitingCount() == 5 && two.waitingCount() == 5)
    #expect(try one.heldElsewhereCount() == 2 && two.heldElsewhereCount() == 3)
  }

  @Test func entryAcknowledgedByHandDoesNotWait() throws {
    let worker = try worker()
    #expect(try worker.add(["a"]) == 1)
    let entry = try take(worker)
    try server.command("XACK", "encoder-worker", "encoder-worker", entry.id)
    #expect(try worker.waitingCount() == 0 && worker.heldElsewhereCount() == 0)
  }

  @Test func manyNamesAreAddedOnce() throws {
    let worker = try worker()
    let names = (0..<10_000).map { "incoming/2026-11-22/session-\($0).tar.zst" }
    #expect(try worker.add(names) == 10_000)
    #expect(try worker.add(names) == 0)
    #expect(try worker.waitingCount() == 10_000)
    #expect(throws: UnusableBatchName.self) { try worker.add(["fine", ""]) }
    #expect(try worker.waitingCount() == 10_000)
  }

  @Test func threadsOfTwoWorkersClaimEachBatchOnce() throws {
    let workers = [try worker("one"), try worker("two")]
    #expect(try workers[0].add((0..<200).map { "\($0)" }) == 200)
    let taken = Mutex<[String]>([])
    DispatchQueue.concurrentPerform(iterations: 6) { index in
      let worker = workers[index % 2]
      while let entry = try? worker.next() {
        taken.withLock { $0.append(entry.name) }
        try? worker.acknowledge(entry)
      }
    }
    let names = taken.withLock { $0 }
    #expect(names.count == 200 && Set(names).count == 200)
    #expect(try isEmpty())
  }

  // MARK: leases

  @Test func renewedClaimIsKept() throws {
    let (one, two) = (try worker("one", lease: 1), try worker("two", lease: Self.longLease))
    #expect(try one.add(["a", "b"]) == 2)
    let entry = try take(one)
    // This worker stops renewing. When another worker takes its entry over, leases have expired.
    let three = try worker("three", lease: 1)
    _ = try take(three)
    three.leave()
    try expire(entry, of: "one")
    #expect(try takeOver(two).map(\.name) == ["b"])
    #expect(try two.takeOver() == [])
    #expect(one.holds(entry.id))
  }

  @Test func expiredLeaseIsTakenOverOnce() throws {
    let one = try worker("one", lease: 1)
    let (two, three) = (try worker("two", lease: Self.longLease), try worker("three", lease: Self.longLease))
    #expect(try one.add(["a"]) == 1)
    let lost = try take(one)
    one.leave()
    let taken = try firstValue(of: "a worker takes the entry over") {
      let entries = try two.takeOver() + three.takeOver()
      return entries.isEmpty ? nil : entries
    }
    #expect(taken == [lost])
    #expect(try two.takeOver() + three.takeOver() == [])
  }

  @Test func eachBeginOfARecoveredEntryCountsAsAnAttempt() throws {
    let first = try worker("0", lease: 1)
    #expect(try first.add(["a"]) == 1)
    _ = try take(first)
    first.leave()
    for attempt in 1...2 {
      let next = try worker("\(attempt)", lease: 1)
      let entry = try #require(try takeOver(next).first)
      #expect(entry.attempt == attempt)
      #expect(try next.begin(entry)?.attempt == attempt + 1)
      next.leave()
    }
  }

  @Test(arguments: ["begin", "fail", "handBack", "settle", "bury"])
  func workerThatLostItsClaimChangesNothing(_ step: String) throws {
    let one = try worker()
    #expect(try one.add(["a"]) == 1)
    let lost = try take(one)
    let (two, entry) = try takeOver(lost)
    #expect(entry == lost && one.holds(lost.id))
    switch step {
    case "begin": #expect(try one.begin(lost) == nil)
    case "fail": #expect(try one.fail(lost) == nil)
    case "handBack": try one.handBack(lost)
    case "settle": try one.acknowledge(lost)
    default: try one.deadLetter(lost, reason: "late")
    }
    #expect(!one.holds(lost.id))
    #expect(try one.waitingCount() == 0 && one.heldElsewhereCount() == 1 && deadLetters().isEmpty)
    #expect(try two.begin(entry)?.attempt == 2)
    #expect(try two.fail(entry)?.failures == 1)
  }

  @Test func evictedWorkerLearnsOfItsLossAtTheNextRenewal() throws {
    let one = try worker("one", lease: 1)
    #expect(try one.add(["a"]) == 1)
    let entry = try take(one)
    // Moves the claim to another worker, as after an expired lease.
    try server.command("XCLAIM", "encoder-worker", "encoder-worker", "two", "0", entry.id)
    try waitUntil("the worker learns of its loss") { !one.holds(entry.id) }
    #expect(try one.heldElsewhereCount() == 1)
  }

  @Test func claimWithLostReplyIsRecoveredWithoutCountingAnAttempt() throws {
    let worker = try worker()
    #expect(try worker.add(["a"]) == 1)
    try server.command(
      "XREADGROUP", "GROUP", "encoder-worker", "one", "COUNT", "1", "STREAMS", "encoder-worker", ">")
    #expect(try worker.next() == nil && worker.waitingCount() == 0 && worker.heldElsewhereCount() == 1)
    let entry = try #require(try worker.takeOver().first)
    #expect(entry.attempt == 0)
    #expect(try worker.begin(entry)?.attempt == 1)
    #expect(try worker.takeOver() == [] && worker.heldElsewhereCount() == 0)
  }

  @Test func noLeaseExpiresBeforeRedisHasRunForALease() throws {
    // These leases do not expire during the test, even on a slow machine. The first worker does not renew meanwhile.
    let (one, two) = (try worker("one", lease: 3_600), try worker("two", lease: 1_800))
    #expect(try one.add(["a"]) == 1)
    try expire(try take(one), of: "one")
    #expect(try two.takeOver() == [])
  }

  @Test func noLeaseExpiresWhileRedisIsDown() throws {
    let (one, two) = (try worker("one", lease: 1), try worker("two", lease: Self.longLease))
    #expect(try one.add(["a", "b"]) == 2)
    let entry = try take(one)
    // This worker stops renewing. When another worker takes its entry over, leases have expired.
    let three = try worker("three", lease: 1)
    let left = try take(three)
    three.leave()
    server.stop()
    // The outage is longer than the first worker's lease.
    usleep(1_500_000)
    try server.restart()
    for (entry, name) in [(entry, "one"), (left, "three")] { try expire(entry, of: name) }
    let taken = try firstValue(of: "a worker takes entries over") {
      // The first call detects its broken connection.
      (try? two.takeOver()).flatMap { $0.isEmpty ? nil : $0 }
    }
    #expect(taken == [left])
    #expect(one.holds(entry.id))
    try two.acknowledge(left)
    try one.acknowledge(entry)
    #expect(try isEmpty())
  }

  @Test func newConnectionTakesNoEntryOverForALease() throws {
    let leaseMs = 2_000
    let (one, two) = (try worker("one", lease: 3_600), try worker("two", lease: leaseMs / 1_000))
    #expect(try one.add(["a"]) == 1)
    let entry = try take(one)
    server.stop()
    #expect(throws: RedisError.self) { try two.takeOver() }
    usleep(UInt32(leaseMs + 500) * 1_000)
    try server.restart()
    // The other worker could not renew during the outage, and has not renewed since.
    try expire(entry, of: "one")
    let connectedMs = MonotonicClock.milliseconds()
    #expect(try two.takeOver() == [])
    #expect(try takeOver(two) == [entry])
    // This lower bound holds on slow machines, too.
    #expect(MonotonicClock.milliseconds() - connectedMs >= leaseMs)
  }

  @Test func renewalBeforeTheLastStepSucceedsOrReportsTheLoss() throws {
    let one = try worker()
    #expect(try one.add(["a"]) == 1)
    let entry = try take(one)
    try expire(entry, of: "one")
    #expect(try one.renew(entry))
    let pending = try server.command("XPENDING", "encoder-worker", "encoder-worker", "-", "+", "1")
    #expect(pending.count == 4 && pending[1] == "one")
    #expect(try Int(#require(pending.dropFirst(2).first)) ?? .max < 3_600_000)
    let (two, taken) = try takeOver(entry)
    #expect(try !one.renew(entry) && !one.holds(entry.id) && two.renew(taken))
    try two.acknowledge(taken)
    #expect(try !two.renew(taken) && !two.holds(taken.id))
  }

  // MARK: returned, failed, dead-lettered

  @Test func returnedBatchKeepsItsCounts() throws {
    let (one, two) = (try worker("one"), try worker("two"))
    #expect(try one.add(["a", "b"]) == 2)
    let failed = try #require(try one.fail(take(one)))
    #expect(failed.failures == 1)
    try one.handBack(failed)
    try one.handBack(failed)
    #expect(try two.waitingCount() == 2)
    #expect(try take(two).name == "b")
    let entry = try take(two)
    #expect(entry.name == "a" && entry.attempt == 1 && entry.failures == 1)
    #expect(try two.fail(entry)?.failures == 2)
    #expect(try two.next() == nil)
  }

  @Test(arguments: [false, true])
  func returnedEntryKeepsTheAttemptsOfDeadWorkers(_ hasBegun: Bool) throws {
    let one = try worker()
    #expect(try one.add(["a"]) == 1)
    var (two, entry) = try takeOver(take(one))
    if hasBegun { entry = try #require(try two.begin(entry)) }
    try two.handBack(entry)
    let again = try take(two)
    #expect(again.attempt == 2)
    // The next worker that takes the entry over reads the same count.
    #expect(try takeOver(again, by: "three").1.attempt == 2)
  }

  @Test func invalidAttemptCountIsIgnored() throws {
    for count in ["-1", "99999", "x", "1e2", "2"] {
      try server.command("XADD", "encoder-worker", "*", "batch", "batch \(count)", "attempt", count)
    }
    let worker = try worker()
    #expect(try (0..<5).map { _ in try take(worker).attempt } == [1, 1, 1, 1, 3])
  }

  @Test func deadLetterIsWrittenOnce() throws {
    let worker = try worker()
    #expect(try worker.add(["a"]) == 1)
    let entry = try #require(try worker.fail(take(worker)))
    for _ in 0..<2 { try worker.deadLetter(entry, reason: "decode 0001.jpg: invalid data") }
    let letters = try deadLetters()
    let letter = try #require(letters.first)
    #expect(
      letters.count == 1 && Set(letter.keys) == ["batch", "reason", "timeMs", "entry", "attempt", "failures", "worker"])
    #expect(letter["batch"] == "a" && letter["reason"] == "decode 0001.jpg: invalid data" && letter["failures"] == "1")
    #expect(letter["timeMs"].flatMap { Int64($0) } ?? 0 > 1_700_000_000_000)
    #expect(try isEmpty() && worker.waitingCount() == 0)
  }

  @Test func invalidEntryBecomesADeadLetterAndDoesNotBlockOthers() throws {
    let long = String(repeating: "x", count: 1_025)
    try server.command("XADD", "encoder-worker", "*", "file", "a")
    try server.command("XADD", "encoder-worker", "*", "batch", "")
    try server.command("XADD", "encoder-worker", "*", "batch", long)
    for name in ["a\\0b", "\\255\\254", "\\237\\160\\128"] {
      try server.command("EVAL", "return redis.call('XADD', KEYS[1], '*', 'batch', '\(name)')", "1", "encoder-worker")
    }
    try server.command("XADD", "encoder-worker", "*", "batch", String(long.dropLast()))
    let worker = try worker()
    let entry = try take(worker)
    #expect(entry.name == long.dropLast())
    try worker.acknowledge(entry)
    #expect(try worker.next() == nil && isEmpty())
    let reasons = try deadLetters().map { $0["reason"] ?? "" }
    let faults = ["missing", "missing", "longer than 1024", "a NUL", "no UTF-8", "no UTF-8"]
    #expect(reasons.count == faults.count)
    for (reason, fault) in zip(reasons, faults) { #expect(reason.contains(fault)) }
    #expect(try deadLetters()[2]["batch"]?.utf8.count == 1_024)
  }

  // MARK: Redis crashes, and loses data

  @Test func noAcknowledgedWriteIsLostWhenRedisIsKilled() throws {
    try server.command("CONFIG", "SET", "appendfsync", "always")
    let worker = try worker()
    let names = (0..<50).map { "\($0)" }
    #expect(try worker.add(names) == 50)
    let entries = try (0..<5).map { _ in try take(worker) }
    try worker.acknowledge(entries[0])
    try worker.deadLetter(entries[1], reason: "bad")
    _ = try worker.fail(entries[2])
    server.kill()
    let failure = #expect(throws: RedisError.self) { try worker.next() }
    #expect(failure?.description.contains("see that Redis runs there") == true)
    #expect(throws: RedisError.self) { try worker.acknowledge(entries[3]) }
    try server.restart()
    #expect(try worker.waitingCount() == 45 && worker.heldElsewhereCount() == 0)
    #expect(try worker.add(names) == 2)
    try worker.acknowledge(entries[3])
    try worker.handBack(entries[2])
    #expect(entries[4].name == "4" && worker.holds(entries[4].id))
    var rest: [RedisStream.Entry] = []
    while let entry = try worker.next() { rest.append(entry) }
    #expect(rest.map(\.name).sorted() == (names[5...] + ["0", "1", "2"]).sorted())
    #expect(rest.first { $0.name == "2" }?.failures == 1)
    #expect(try deadLetters().count == 1)
  }

  @Test func claimsAreLostWhenRedisLosesItsData() throws {
    let worker = try worker("one", lease: 1)
    #expect(try worker.add(["a", "b"]) == 2)
    let entry = try take(worker)
    try server.flush()
    try waitUntil("the worker learns of its loss") { !worker.holds(entry.id) }
    try worker.acknowledge(entry)
    try worker.handBack(entry)
    #expect(try worker.waitingCount() == 0 && worker.next() == nil && worker.takeOver() == [])
    #expect(try worker.add(["a", "b"]) == 2)
    #expect(try take(worker).name == "a")
  }

  @Test func eachWorkerWarnsOncePerDataLossOfTheQueue() throws {
    let warnings = Mutex<[String]>([])
    let workers = try ["one", "two"].map { name in
      try worker(name) { warning in warnings.withLock { $0.append(warning) } }
    }
    #expect(try workers[0].add(["a", "b"]) == 2)
    let entries = try workers.map(take)
    #expect(!workers[0].lostState && !workers[1].lostState)
    for losses in 1...2 {
      try server.flush()
      // Threads of both workers call at once. One thread recreates the group, and the other worker must detect the
      // loss, too.
      DispatchQueue.concurrentPerform(iterations: 8) { index in
        for _ in 0..<5 { _ = try? workers[index % 2].waitingCount() }
      }
      #expect(warnings.withLock { $0.count } == 2 * losses)
    }
    #expect(warnings.withLock { $0.allSatisfy { $0.contains("run reconcile to queue all waiting batches again") } })
    #expect(workers[0].lostState && workers[1].lostState)
    for (worker, entry) in zip(workers, entries) { #expect(try !worker.holds(entry.id) && !worker.renew(entry)) }
    // Redis has lost no data since this worker joined.
    #expect(try worker("three").waitingCount() == 0)
    #expect(try !worker("four").lostState)
  }

  @Test(arguments: ["next", "takeOver", "waiting", "held", "add", "settle"])
  func missingGroupIsCreatedAgainByEachOperation(_ step: String) throws {
    let worker = try worker()
    #expect(try worker.add(["a"]) == 1)
    let entry = try take(worker)
    try server.flush()
    try server.command("XADD", "encoder-worker", "*", "batch", "b")
    switch step {
    case "next": #expect(try take(worker).name == "b")
    case "takeOver": #expect(try worker.takeOver() == [])
    case "waiting": #expect(try worker.waitingCount() == 1)
    case "held": #expect(try worker.heldElsewhereCount() == 0)
    case "add": #expect(try worker.add(["c"]) == 1)
    default: try worker.acknowledge(entry)
    }
    #expect(!worker.holds(entry.id))
    #expect(try server.command("XINFO", "GROUPS", "encoder-worker").contains("encoder-worker"))
  }

  // MARK: workers join and leave

  private func workers() throws -> [String] {
    let lines = try server.command("XINFO", "CONSUMERS", "encoder-worker", "encoder-worker")
    return zip(lines, lines.dropFirst()).filter { $0.0 == "name" }.map(\.1).sorted()
  }

  @Test func leavingWorkerIsRemovedUnlessItHoldsAClaim() throws {
    let (one, two) = (try worker("one"), try worker("two"))
    #expect(try one.add(["a", "b"]) == 2)
    let entry = try take(one)
    try two.acknowledge(take(two))
    #expect(try workers() == ["one", "two"])
    two.leave()
    one.leave()
    #expect(try workers() == ["one"])
    try one.acknowledge(entry)
    one.leave()
    #expect(try workers() == [])
  }

  @Test func silentWorkerIsRemovedUnlessItHoldsAClaim() throws {
    let (one, two) = (try worker("one"), try worker("two"))
    #expect(try one.add(["a", "b"]) == 2)
    _ = try take(one)
    try two.acknowledge(take(two))
    #expect(try worker("three").takeOver() == [])
    #expect(try workers() == ["one", "two"])
    #expect(try worker("four", forgetAfter: 0).takeOver() == [])
    #expect(try workers() == ["one"])
  }

  @Test func onlyTheHolderOfAnEntryAnnouncesAnEvent() throws {
    let one = try worker()
    _ = try one.add(["a"])
    let entry = try take(one)
    for _ in 0..<2 { #expect(try one.announce(entry, key: "k", event: "{}")) }
    let (_, taken) = try takeOver(entry)
    #expect(taken.name == "a")
    #expect(try !one.announce(entry, key: "late", event: "{}") && !one.holds(entry.id))
    let fields = try server.command("XRANGE", "{encoder-worker}:published", "-", "+")
    #expect(fields.count == 10 && fields.count { $0 == "k" } == 2 && !fields.contains("late"))
  }

  @Test func streamOfEventsIsBounded() throws {
    let one = try worker()
    _ = try one.add(["a"])
    let entry = try take(one)
    // Redis trims whole nodes of a hundred entries.
    for number in 0..<(RedisStream.maximumEvents + 500) {
      #expect(try one.announce(entry, key: "\(number)", event: "{}"))
    }
    let length = try server.command("XLEN", "{encoder-worker}:published").first.flatMap { Int($0) } ?? 0
    #expect((RedisStream.maximumEvents...RedisStream.maximumEvents + 200).contains(length))
  }

  @Test func forgivenEntryStartsWithItsFirstAttemptAgain() throws {
    let one = try worker()
    _ = try one.add(["a"])
    let entry = try take(one)
    let (two, taken) = try takeOver(entry)
    let begun = try #require(try two.begin(taken))
    #expect(begun.attempt > 1)
    #expect(try two.forgive(begun)?.attempt == 1)
    #expect(try one.forgive(entry) == nil)
    let (three, again) = try takeOver(begun, by: "three")
    #expect(try three.begin(again)?.attempt == 2)
  }
}
