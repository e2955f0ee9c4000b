import FileSystem
import Foundation
import Synchronization
import TestSupport
import Testing
import WorkQueues

@testable import Remote

/// Redis crashes, and loses its data.
@Suite(.enabled(if: QueueServer.isInstalled, "there is no redis-server: scripts/setup test"))
struct RedisDataLossTests: RedisStreamSuite {
  let server: QueueServer

  init() throws { server = try QueueServer() }

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
    let failure = #expect(throws: Failure.self) { try worker.next() }
    #expect(failure?.description.contains("see that Redis runs there") == true)
    #expect(throws: Failure.self) { try worker.acknowledge(entries[3]) }
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
}
