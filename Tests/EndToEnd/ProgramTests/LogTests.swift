import Foundation
import TestSupport
import Testing

/// The worker's log.
@Suite struct LogTests {
  private let spool: TestSpool
  /// A name that would clear a terminal and start a line of its own.
  private let nasty = "bad\u{1B}[2J\nforged\u{9B}1m"

  init() throws { spool = try TestSpool() }

  private func lines(_ result: Tool.Result) -> [String] {
    result.errors.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
  }

  /// A line of the log in JSON. Each has the first three members.
  private struct Line: Decodable {
    let time, level, event: String
    let worker, batch, session: String?
    let message, reason, advice, error: String?
    let attempt, segments, frames, tookMs: Int?
  }

  private func objects(_ result: Tool.Result) throws -> [Line] {
    try lines(result).map { try JSONDecoder().decode(Line.self, from: Data($0.utf8)) }
  }

  @Test func eachEventIsOneLineThatNamesTheBatch() throws {
    try spool.addSmall("walk@1", startMs: 1_767_859_512_340)
    try spool.add(file: "bad", [1, 2, 3])
    let result = try spool.drain("-v")
    #expect(result.status == 65 && result.text.isEmpty)
    let said = lines(result)
    let shape = try Regex(#"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (warning|info) .*$"#)
    #expect(said.dropLast().allSatisfy { $0.wholeMatch(of: shape) != nil }, "\(said)")
    let published = try #require(said.first { $0.contains(" info batch.published batch=walk@1 session=walk ") })
    let facts = Set(published.split(separator: " ").dropFirst(5).map { $0.prefix { $0 != "=" } })
    let stages: Set<Substring> = ["fetchMs", "readMs", "decodeMs", "encodeMs", "publishMs", "viewsMs"]
    #expect(
      facts.isSuperset(of: ["frames", "segments", "tookMs"]) && facts.subtracting(stages).count == 3, "\(published)")
    #expect(published.contains(" frames=2 ") && published.contains(" segments=1 "))
    let quarantined = try #require(said.first { $0.contains(" warning batch.quarantined batch=bad ") })
    #expect(quarantined.contains(#" reason="read bad: "#) && quarantined.contains(#" advice=""#))
  }

  @Test func defaultLogLevelShowsProblemsOnly() throws {
    try spool.add("gap")
    let quiet = try spool.drain()
    #expect(lines(quiet) == ["1 batch published, 4 segments, 5 frames; sessions are in \(spool.output)"])
    try spool.add("gap", as: "again")
    #expect(
      try lines(spool.drain("--log-level", "debug")).contains {
        $0.contains(" debug batch.claimed batch=again attempt=1 ")
      })
    try spool.add(file: "bad", [1])
    #expect(try lines(spool.drain("--log-level", "error")).count == 1)
    for wrong in [["--log-level", "loud"], ["--log-format", "xml"]] {
      #expect(try Tool.run(EncoderWorker.path, ["--spool", spool.path, "--drain"] + wrong).status == 64)
    }
  }

  @Test func jsonLogHasOneObjectALine() throws {
    try spool.addSmall("walk@1", startMs: 1_767_859_512_340)
    try spool.add(file: nasty, [1, 2, 3])
    let result = try spool.drain("--log-format", "json", "--log-level", "debug", "--profile")
    let said = try objects(result)
    let published = try #require(said.first { $0.event == "batch.published" })
    #expect(published.segments == 1 && published.frames == 2 && (published.tookMs ?? -1) >= 0)
    #expect(published.batch == "walk@1" && published.session == "walk")
    #expect(published.level == "info" && published.worker != nil)
    let claimed = said.filter { $0.event == "batch.claimed" }
    #expect(Set(claimed.compactMap(\.batch)) == ["walk@1", nasty])
    #expect(claimed.allSatisfy { $0.attempt == 1 })
    let refused = try #require(said.first { $0.level == "warning" })
    #expect(refused.event == "batch.quarantined" && refused.reason != nil)
    #expect(refused.batch == nasty && refused.advice != nil)
    #expect(said.contains { $0.message?.contains("stage") ?? false })
  }

  @Test func profileOfARunningWorkerIsALineOfJSON() throws {
    struct Profile: Decodable {
      struct Stage: Decodable { let stage: String, times: Int, wallMs, p95Ms: Double }
      let event: String, sinceMs: Int64, untilMs: Int64, stages: [Stage]
    }
    try spool.addSmall("walk@1", startMs: 1_767_859_512_340)
    let result = try spool.drain("--profile-every", "60")
    let line = try #require(lines(result).first { $0.hasPrefix("{") })
    let profile = try JSONDecoder().decode(Profile.self, from: Data(line.utf8))
    #expect(profile.event == "worker.profile" && profile.sinceMs <= profile.untilMs)
    #expect(profile.stages.map(\.stage).filter { ["open", "encode", "publish", "views"].contains($0) }.count == 4)
    #expect(profile.stages.first { $0.stage == "publish" }?.times == 1)
    for wrong in [["--profile-every", "0"], ["--profile-every", "5", "--profile"]] {
      #expect(try Tool.run(EncoderWorker.path, ["--spool", spool.path, "--drain"] + wrong).status == 64)
    }
  }

  /// If the session is known when a batch fails, the log names it.
  @Test func failureNamesItsSession() throws {
    try spool.addSmall("walk@1", startMs: 1_767_859_512_340)
    _ = try spool.scratch.directory("spool/output/walk")
    try spool.scratch.file("spool/output/walk/segment-1767859512340.json", [])
    let said = try objects(try spool.drain("--log-format", "json"))
    let failed = try #require(said.first { $0.level == "error" })
    #expect(failed.event == "batch.failed" && failed.error != nil)
    #expect(failed.batch == "walk@1" && failed.session == "walk")
  }

  @Test func untrustedNamesAreEscaped() throws {
    try spool.add(file: nasty, [1, 2, 3])
    let run = try spool.drain("-v")
    #expect(run.status == 65 && lines(run).count == 2, "\(run.errors)")
    #expect(run.errors.contains(#"batch="bad\u001b[2J\nforged\u009b1m""#), "\(run.errors)")
    let list = try EncoderWorker.run("quarantine", "list", "--spool", spool.path)
    #expect(list.text.split(separator: "\n").count == 2)
    let batch = spool.path + "/quarantine/" + nasty
    let encoded = try EncoderWorker.run("encode", batch, "--output", spool.output)
    let inspected = try EncoderWorker.run("encode", "--dry-run", batch)
    let again = try EncoderWorker.run("quarantine", "retry", "--all", "--spool", spool.path)
    #expect(again.text.split(separator: "\n").count == 1)
    for said in [run.errors, list.text, encoded.errors, inspected.text, again.text] {
      #expect(!said.unicodeScalars.contains { $0 != "\n" && ($0.value < 0x20 || (0x7F..<0xA0).contains($0.value)) })
    }
  }
}
