import Foundation
import TestSupport
import Testing

/// The operator's commands for a spool.
@Suite struct StatusTests {
  private let spool: TestSpool

  init() throws { spool = try TestSpool() }

  private struct Status: Decodable {
    struct QueueDepth: Decodable {
      let count: Int
      let oldestMs: Int64?
    }
    struct Worker: Decodable {
      struct Held: Decodable {
        let batch: String
        let attempt: Int
        let failures: Int
      }
      struct SharedCounters: Decodable {
        let published: Int
        let frames: Int
      }
      let worker: String
      let life: String
      let held: [Held]
      let tally: SharedCounters?
    }
    let waiting, claimed, quarantined, done: QueueDepth
    let retrying: Int
    let freeBytes: Int
    let perMinute: Int
    var bytesADay: Int?
    var daysLeft: Int?
    let workers: [Worker]
  }

  private func run(_ words: String...) throws -> Tool.Result {
    try Tool.run(EncoderWorker.path, words + ["--spool", spool.path])
  }

  private func status() throws -> Status {
    let result = try run("status", "--json")
    try #require(result.status == 0, "\(result.errors)")
    return try JSONDecoder().decode(Status.self, from: Data(result.text.utf8))
  }

  @Test func batchesOfEachStateAreCounted() throws {
    try spool.add("exact-1fps")
    try spool.add(file: "bad", [1, 2, 3])
    #expect(try spool.drain("--keep-batches").status == 65)
    try spool.addSmall("first", startMs: 1_767_859_512_340)
    try spool.addSmall("second", startMs: 1_767_859_512_340)
    try spool.add(file: "draft.tmp", [1])
    let status = try status()
    #expect(status.waiting.count == 2 && status.claimed.count == 0 && status.retrying == 0)
    #expect(status.quarantined.count == 1 && status.done.count == 1 && status.workers.isEmpty)
    #expect((status.waiting.oldestMs ?? -1) >= 0 && status.claimed.oldestMs == nil)
    #expect(status.freeBytes > 0 && status.perMinute == 0)
    let text = try run("status").text
    #expect(text.contains("waiting") && text.contains("quarantine list"))
    #expect(!text.contains("\u{1B}"))
  }

  @Test func claimsOfADeadWorkerAreListed() throws {
    let dead = "\(ProcessInfo.processInfo.hostName)~99999999~dead1"
    _ = try spool.scratch.directory("spool/claimed/\(dead)/7.2.1")
    try spool.scratch.file("spool/claimed/\(dead)/7.2.1/batch", [1, 2, 3])
    try spool.scratch.file("spool/claimed/\(dead)/alive", [])
    _ = try spool.scratch.directory("spool/claimed/elsewhere~1~abc1")
    let status = try status()
    #expect(status.claimed.count == 1 && status.retrying == 1)
    let worker = try #require(status.workers.first { $0.worker == dead })
    #expect(worker.life == "dead" && worker.tally == nil)
    #expect(worker.held.map(\.batch) == ["batch"] && worker.held[0].attempt == 2 && worker.held[0].failures == 1)
    #expect(status.workers.first { $0.worker == "elsewhere~1~abc1" }?.life == "elsewhere")
    // `status` has changed nothing.
    #expect(try spool.names("claimed/\(dead)/7.2.1") == ["batch"])
  }

  @Test func statusShowsTheCountersOfARunningWorker() throws {
    let worker = try spool.start()
    try spool.waitUntil("status lists the worker") { try status().workers.count == 1 }
    try spool.add("exact-1fps")
    try spool.waitUntil("status counts the published batch") { try status().workers.first?.tally?.published == 1 }
    let seen = try #require(try status().workers.first)
    #expect(seen.life == "alive" && seen.held.isEmpty && (seen.tally?.frames ?? 0) > 0)
    worker.signal(SIGTERM)
    #expect(try worker.wait() == 0)
    #expect(try spool.isAtRest)
  }

  /// Sets the times of a session's files, in hours before now.
  private func age(_ session: String, hours: Double) throws {
    let directory = spool.output + "/" + session
    let date = Date(timeIntervalSinceNow: -3_600 * hours)
    for name in try names(in: directory) {
      try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: directory + "/" + name)
    }
    try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: directory)
  }

  private func bytes(of session: String) throws -> Int {
    let blocks = try Tool.output(
      "stat",
      ["-c", "%b"]
        + names(in: spool.output + "/" + session).map {
          spool.output + "/\(session)/\($0)"
        })
    return 512 * String(decoding: blocks, as: UTF8.self).split(separator: "\n").compactMap { Int($0) }.reduce(0, +)
  }

  @Test func bytesOfADayAndTheDaysLeftAreEstimated() throws {
    try spool.addSmall("old", startMs: 1_767_859_512_340)
    try spool.addSmall("new", startMs: 1_767_859_512_340)
    try spool.drain()
    // Nothing is known of a day yet.
    #expect(try status().bytesADay == nil && status().daysLeft == nil && !run("status").text.contains("a day"))
    let (old, new) = (try bytes(of: "old"), try bytes(of: "new"))
    for session in ["old", "new"] { try age(session, hours: 12) }
    let half = try #require(try status().bytesADay)
    #expect(abs(half - 2 * (old + new)) < (old + new) / 100)
    try age("old", hours: 30)
    let seen = try status()
    #expect(seen.bytesADay == new)
    #expect(seen.daysLeft == seen.freeBytes / new)
    #expect(try run("status").text.contains(" a day, full in "))
    for session in ["old", "new"] { try age(session, hours: 30) }
    #expect(try status().bytesADay == nil)
  }

  @Test func statusOfANewSpoolIsReported() throws {
    try spool.addSmall("first", startMs: 1_767_859_512_340)
    let status = try status()
    #expect(status.waiting.count == 1 && status.workers.isEmpty && status.quarantined.count == 0)
    #expect(try run("quarantine").status == 0)
  }

  /// On a terminal, each state has a line, and an untrusted name cannot control the terminal.
  @Test func theTableNamesEachState() throws {
    let dead = "\(ProcessInfo.processInfo.hostName)~99999999~dead1"
    _ = try spool.scratch.directory("spool/claimed/\(dead)/7.2.1/red\u{1B}[31m")
    try spool.addSmall("first", startMs: 1_767_859_512_340)
    let shown = try Terminal.run(["status", "--spool", spool.path]).text.replacing("\r\n", with: "\n")
    for (state, count) in [("waiting", 1), ("claimed", 1), ("retrying", 1), ("quarantined", 0), ("done", 0)] {
      #expect(shown.contains(try Regex("(^|\n)\(state) +\(count)\\b")), "\(state): \(shown)")
    }
    #expect(shown.contains("0 workers alive, 1 dead") && shown.contains(#"red\u001b[31m ("#), "\(shown)")
    #expect(!shown.contains("\u{1B}"))
  }

  @Test func retryOfOneBatchThatFailsDoesNotBlockOthers() throws {
    for name in ["a", "b", "c"] { try spool.add(file: name, [1, 2, 3]) }
    #expect(try spool.drain().status == 65)
    try spool.add(file: "b", [1])
    let result = try run("quarantine", "retry", "--all")
    #expect(result.status == 75 && result.errors.contains("another batch b waits"), "\(result.errors)")
    #expect(try spool.names("incoming") == ["a", "b", "c"])
    #expect(try spool.names("quarantine") == ["b", "b.reason.json"])
  }

  @Test func pathWithoutASpoolIsReported() throws {
    let result = try Tool.run(EncoderWorker.path, ["status", "--spool", spool.scratch.path("nothing")])
    #expect(result.status != 0 && result.errors.contains("nothing"))
  }

  @Test func quarantineIsListedShownRetriedAndPurged() throws {
    for _ in 1...2 {
      try spool.add(file: "bad", [1, 2, 3])
      #expect(try spool.drain().status == 65)
    }
    let list = try run("quarantine", "list")
    #expect(list.status == 0 && list.text.split(separator: "\n").count == 3)
    #expect(try run("quarantine", "list", "--json").text.split(separator: "\n").count == 2)
    let shown = try run("quarantine", "show", "bad.2")
    #expect(shown.status == 0 && shown.text.contains("bad.2") && shown.text.contains("cause"))

    // The retry keeps the batch's original name, which can determine its session.
    let again = try run("quarantine", "retry", "bad.2")
    #expect(again.status == 0 && again.text.contains("waits again as bad"), "\(again.errors)")
    #expect(try spool.names("incoming") == ["bad"] && spool.names("quarantine") == ["bad", "bad.reason.json"])
    #expect(try run("quarantine", "retry", "bad").status == 75)
    #expect(try spool.names("quarantine") == ["bad", "bad.reason.json"])

    #expect(try run("quarantine", "purge", "--all", "--dry-run").status == 0)
    #expect(try spool.names("quarantine") == ["bad", "bad.reason.json"])
    #expect(try run("quarantine", "purge", "--all").status == 0)
    #expect(try spool.names("quarantine").isEmpty && spool.names("trash").isEmpty)
    #expect(try spool.names("incoming") == ["bad"])
    for words in [["retry", "bad"], ["show", "../incoming/bad"], ["purge"], ["retry", "--all", "bad"]] {
      #expect(try Tool.run(EncoderWorker.path, ["quarantine"] + words + ["--spool", spool.path]).status == 64)
    }
  }
}
