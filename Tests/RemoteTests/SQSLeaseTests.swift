import FileSystem
import Foundation
import FrameBatches
import Synchronization
import TestSupport
import Testing
import WorkQueues

@testable import JSON
@testable import Remote

/// Leases and attempts of the messages of SQS.
@Suite(.enabled(if: StoreServer.isInstalled, "\(StoreServer.reason)"))
struct SQSLeaseTests: SQSSuite {
  let store: StoreServer
  let objects = MemoryObjects()
  let clock = TestClock()

  init() throws { store = try StoreServer.shared.get() }

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
      client(queue.address), objects: failing, place: place, role: .worker(drains: false), lease: 3_600, waitS: 0,
      warn: { _ in })
    for _ in 0..<5 { #expect(throws: StoppingObjects.Stopped.self) { try worker.next() } }
    #expect(try queue.counts() == (0, 1))
    #expect(try worker.next() == nil && worker.takeOver().map(\.attempt) == [1])
  }

  @Test func messageWhoseNotesAreUnreadIsHandedBackAtTheEnd() throws {
    let queue = try MessageQueue(store)
    try queue.send("a")
    _ = try queue.receive(hidingFor: 0)
    let failing = StoppingObjects(objects, after: 0)
    let worker = try SQSQueue(
      client(queue.address), objects: failing, place: place, role: .worker(drains: false), lease: 3_600, waitS: 0,
      warn: { _ in })
    #expect(throws: StoppingObjects.Stopped.self) { try worker.next() }
    #expect(try queue.counts() == (0, 1))
    worker.leave()
    #expect(try queue.counts() == (1, 0))
  }

  @Test func lostAnswersLoseNoMessage() throws {
    let store = try StoreServer()
    let queue = try MessageQueue(store)
    let worker = try SQSQueue(
      client(queue.address, of: store), objects: objects, place: place, role: .worker(drains: false),
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
}
