import Foundation
import TestSupport
import Testing

@Suite struct PruneTests {
  private let spool: TestSpool
  /// No process has this number.
  private let dead: String

  init() throws {
    spool = try TestSpool()
    dead = "\(ProcessInfo.processInfo.hostName)~99999999~dead1"
    try spool.add("exact-1fps")
    try spool.add(file: "bad", [1, 2, 3])
    #expect(try spool.drain().status == 65)
  }

  private func leave() throws -> [String] {
    let session = "output/exact-1fps/"
    let left = [
      "claimed/\(dead)/1.1.0", "output/.staging/\(dead)", "trash/\(dead)~1/batch", "tmp/\(dead).part",
      "output/another",
    ]
    for directory in left { _ = try spool.scratch.directory("spool/" + directory) }
    for file in [
      "claimed/\(dead)/alive", "output/.staging/\(dead)/alive", "output/.staging/\(dead)/1",
      "trash/\(dead)~1/batch/frame.jpg", "tmp/\(dead).part/frame.jpg", session + "segment-1767859500000.mp4",
      "output/another/segment-1767859500000.mp4",
    ] {
      try spool.scratch.file("spool/" + file, [1, 2, 3])
    }
    let reason = try String(contentsOfFile: spool.path + "/quarantine/bad.reason.json", encoding: .utf8)
    let field = try #require(reason.range(of: #""worker" *: *"[^"]*""#, options: .regularExpression))
    try spool.scratch.file(
      "spool/quarantine/gone.reason.json",
      Array(reason.replacingCharacters(in: field, with: "\"worker\": \"\(dead)\"").utf8))
    return [
      "claimed/\(dead)", "output/.staging/\(dead)", "trash/\(dead)~1", "tmp/\(dead).part",
      session + "segment-1767859500000.mp4", "output/another/segment-1767859500000.mp4",
      "quarantine/gone.reason.json",
    ].map { spool.path + "/" + $0 }
  }

  private func prune(_ options: String...) throws -> Tool.Result {
    try Tool.run(EncoderWorker.path, ["prune", "--spool", spool.path] + options)
  }

  @Test func onlyLeftoversOfDeadWorkersAreRemoved() throws {
    let whole = try snapshot(of: spool.path).mapValues(\.bytes)
    let left = try leave()
    let littered = try snapshot(of: spool.path).mapValues(\.bytes)
    for options in [["--dry-run"], []] {
      let result = try Tool.run(EncoderWorker.path, ["prune", "--spool", spool.path] + options)
      #expect(result.status == 0, "\(result.errors)")
      let named = result.text.split(separator: "\n").map { String($0.prefix { $0 != ":" }) }
      #expect(Set(named) == Set(left))
      if !options.isEmpty { #expect(try snapshot(of: spool.path).mapValues(\.bytes) == littered) }
    }
    #expect(try snapshot(of: spool.path).mapValues(\.bytes) == whole)
    #expect(try spool.isAtRest && names(in: spool.output) == [".staging", "exact-1fps"])
    #expect(try prune().text.isEmpty)
  }

  /// A batch can have any name.
  @Test func batchNamedLikeAReasonIsKept() throws {
    try spool.add(file: "a.reason.json", Array(#"{"format":"quarantine-reason/1","worker":"gone"}"#.utf8))
    #expect(try spool.drain().status == 65)
    let quarantined = try spool.names("quarantine")
    #expect(quarantined.contains("a.reason.json") && quarantined.contains("a.reason.json.reason.json"))
    #expect(try prune().text.isEmpty)
    #expect(try spool.names("quarantine") == quarantined)
  }

  @Test func waitingBatchIsKept() throws {
    try spool.add("gap")
    let held = try spool.scratch.directory("spool/claimed/\(dead)/1.1.0")
    try FileManager.default.moveItem(atPath: spool.path + "/incoming/gap", toPath: held + "/gap")
    #expect(try prune().text.isEmpty)
    #expect(try spool.drain().status == 0)
    #expect(try PublishedSession(spool.output + "/gap").manifests.isEmpty == false)
  }

  /// A worker of another host holds a batch and sends no heartbeat. Another worker publishes the batch after the lease.
  @Test func workerTakesOverAClaimOfAnotherHostAfterTheLease() throws {
    let held = try spool.scratch.directory("spool/claimed/elsewhere~7~x1/1.1.0")
    try spool.scratch.file("spool/claimed/elsewhere~7~x1/alive", Array("5".utf8))
    try spool.add("gap")
    try FileManager.default.moveItem(atPath: spool.path + "/incoming/gap", toPath: held + "/gap")
    #expect(try spool.drain().status == 0)
    #expect(try names(in: held) == ["gap"])
    let worker = try spool.start("--lease", "10")
    try spool.waitUntil("the worker has taken over the batch") {
      try names(in: spool.path + "/claimed/elsewhere~7~x1") == ["alive"]
    }
    worker.signal(SIGTERM)
    #expect(try worker.wait() == 0)
    #expect(try spool.drain().status == 0)
    #expect(FileManager.default.fileExists(atPath: spool.output + "/gap/session.json"))
    let pruned = try prune("--lease", "10")
    #expect(pruned.text == spool.path + "/claimed/elsewhere~7~x1: of a worker that is gone, 1 B\n")
    #expect(try spool.names("claimed").isEmpty)
  }

  @Test func missingSpoolIsReportedAndNotCreated() throws {
    for command in [["prune"], ["status"], ["quarantine", "list"]] {
      let result = try Tool.run(EncoderWorker.path, command + ["--spool", spool.scratch.path("none")])
      #expect(
        result.status == 64 && result.text.isEmpty && result.errors.contains("none: no spool"), "\(result.errors)")
    }
    #expect(!FileManager.default.fileExists(atPath: spool.scratch.path("none")))
  }
}
