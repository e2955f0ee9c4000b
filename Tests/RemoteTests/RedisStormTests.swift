import Encoding
import FileSystem
import Glibc
import Synchronization
import TestSupport
import Testing
import WorkQueues

@testable import Remote

/// Workers and Redis crash at random. Each batch must be completed once, and none lost.
@Suite(.enabled(if: QueueServer.isInstalled, "there is no redis-server: scripts/setup test"))
struct RedisStormTests {
  /// State that the workers share.
  private final class Storm: Sendable {
    let url: RedisURL
    let isOver = Atomic(false)
    let settled = Mutex<Set<String>>([])

    init(_ url: RedisURL) { self.url = url }

    /// Runs one worker after the other. Each ends at random and keeps its claims.
    func work(_ thread: Int) {
      var number = 0
      while !isOver.load(ordering: .relaxed) {
        number += 1
        let worker = try? RedisStream(
          url, consumer: "\(thread).\(number)", store: "s3://test/", lease: 1, allowsNonDurable: false, warn: { _ in })
        while let worker, !isOver.load(ordering: .relaxed), Int.random(in: 0..<20) > 0 { live(worker) }
        usleep(10_000)
      }
    }

    private func live(_ worker: RedisStream) {
      var entries: [RedisStream.Entry] = []
      if let entry = try? worker.next() {
        entries = [entry]
      } else {
        entries = ((try? worker.takeOver()) ?? []).compactMap { entry in insist { try worker.begin(entry) } ?? nil }
      }
      if entries.isEmpty { usleep(20_000) }
      for entry in entries {
        switch Int.random(in: 0..<4) {
        case 0: insist { try worker.handBack(entry) }
        case 1: insist { try worker.deadLetter(entry, reason: "chance") }
        default:
          insist { try worker.acknowledge(entry) }
          settled.withLock { _ = $0.insert(entry.name) }
        }
      }
    }

    @discardableResult
    private func insist<Value>(_ step: () throws -> Value) -> Value? {
      while !isOver.load(ordering: .relaxed) {
        if let value = try? step() { return value }
        usleep(20_000)
      }
      return nil
    }
  }

  @Test func eachBatchIsAcknowledgedOrDeadLetteredOnce() throws {
    let server = try QueueServer(["--appendfsync", "always"])
    let url = try RedisURL(server.url)
    let queue = try RedisStream(
      url, consumer: "producer", store: "s3://test/", lease: 1, allowsNonDurable: false, warn: { _ in })
    let names = Set((0..<400).map { "batch-\($0)" })
    #expect(try queue.add(Array(names)) == 400)
    let storm = Storm(url)
    let threads = ThreadGroup()
    for thread in 0..<3 { try threads.start { storm.work(thread) } }
    defer {
      storm.isOver.store(true, ordering: .relaxed)
      threads.join()
    }
    // Kills Redis each time the workers finish a quarter of the batches, without a time limit.
    for quarter in 1...3 {
      try waitUntil("the workers have done \(quarter) of 4 quarters", pauseMs: 2) {
        // The first call detects its broken connection.
        (try? queue.waitingCount()).map { $0 <= names.count * (4 - quarter) / 4 } ?? false
      }
      usleep(UInt32.random(in: 0..<20_000))
      server.kill()
      try server.restart()
    }
    try waitUntil("the queue is empty") { (try? queue.waitingCount() + queue.heldElsewhereCount()) == 0 }
    #expect(try queue.waitingCount() == 0 && queue.heldElsewhereCount() == 0)
    #expect(try server.command("HLEN", "{encoder-worker}:batches") == ["0"])
    let script = """
      local names = {}
      for i, entry in ipairs(redis.call('XRANGE', KEYS[1], '-', '+')) do names[i] = entry[2][2] end
      return names
      """
    let deadLetters = try server.command("EVAL", script, "1", "{encoder-worker}:dead")
    #expect(Set(deadLetters).count == deadLetters.count)
    #expect(storm.settled.withLock { $0 }.union(deadLetters) == names)
  }
}
