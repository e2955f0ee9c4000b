import Foundation
import TestSupport
import Testing
import WorkQueues

@testable import Remote

/// Names that are handed back, fail, or become dead letters.
@Suite(.enabled(if: QueueServer.isInstalled, "there is no redis-server: scripts/setup test"))
struct RedisDeadLetterTests: RedisStreamSuite {
  let server: QueueServer

  init() throws { server = try QueueServer() }

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
}
