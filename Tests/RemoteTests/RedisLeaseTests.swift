import FileSystem
import Foundation
import TestSupport
import Testing
import WorkQueues

@testable import Remote

/// Leases: renewed by their holder, taken over after they expire, never because Redis was away.
@Suite(.enabled(if: QueueServer.isInstalled, "there is no redis-server: scripts/setup test"))
struct RedisLeaseTests: RedisStreamSuite {
  let server: QueueServer

  init() throws { server = try QueueServer() }

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

  @Test(arguments: [false, true])
  func lateAcknowledgementOrDeadLetterChangesNothing(_ isDeadLetter: Bool) throws {
    let one = try worker()
    #expect(try one.add(["a"]) == 1)
    let lost = try take(one)
    let (two, entry) = try takeOver(lost)
    #expect(entry == lost && one.holds(lost.id))
    if isDeadLetter { try one.deadLetter(lost, reason: "late") } else { try one.acknowledge(lost) }
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
    #expect(throws: Failure.self) { try two.takeOver() }
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
}
