import FileSystem
import Foundation
import TestSupport
import Testing
import WorkQueues

@testable import Remote

/// Names that wait, are claimed and acknowledged; workers that join and leave; events.
@Suite(.enabled(if: QueueServer.isInstalled, "there is no redis-server: scripts/setup test"))
struct RedisStreamTests: RedisStreamSuite {
  let server: QueueServer

  init() throws { server = try QueueServer() }

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
    #expect(throws: Failure.self) { try worker.add(["fine", ""]) }
    #expect(try worker.waitingCount() == 10_000)
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
}
