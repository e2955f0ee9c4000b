import Foundation
import TestSupport
import Testing

/// `prune` with maximum ages, as an operator runs it.
@Suite struct PruneAgeTests {
  private let spool: TestSpool
  private let session: String

  init() throws {
    spool = try TestSpool()
    try spool.addSmall("walk@1", startMs: 1_767_859_512_340)
    try spool.add(file: "bad", [1, 2, 3])
    #expect(try spool.drain("--keep-batches").status == 65)
    session = spool.output + "/walk"
    try spool.endAnnounced("walk")
    for file in try names(in: session) { age(session + "/" + file, days: 100) }
  }

  private func age(_ path: String, days: Int) {
    let time = timespec(tv_sec: time(nil) - days * 86_400, tv_nsec: 0)
    #expect(utimensat(AT_FDCWD, path, [time, time], AT_SYMLINK_NOFOLLOW) == 0)
  }

  private func prune(_ path: String, _ options: String...) throws -> Tool.Result {
    try Tool.run(EncoderWorker.path, ["prune", "--spool", path] + options)
  }

  /// The line of `prune --json` for a session.
  private struct Line: Decodable {
    let path: String
    let bytes: Int
  }

  @Test func oldSessionIsRemovedAndItsBatchCanBePublishedAgain() throws {
    #expect(try prune(spool.path, "--sessions", "15w").text.isEmpty)
    let bytes = try names(in: session).reduce(0) {
      try $0 + Data(contentsOf: URL(fileURLWithPath: session + "/" + $1)).count
    }
    let said = try prune(spool.path, "--sessions", "99d", "--dry-run")
    #expect(said.text.wholeMatch(of: #/.*/walk: a session, [0-9.]+ kB\n/#) != nil)
    #expect(said.errors.contains(#/^1 would be removed, [0-9.]+ kB/#))
    let gone = try prune(spool.path, "--sessions", "99d", "--json")
    let line = try gone.json(as: Line.self)
    #expect(line.path == session && line.bytes == bytes)
    #expect(gone.errors.contains(#/^1 removed, [0-9.]+ kB/#))
    #expect(try names(in: spool.output) == [".staging"])
    #expect(try spool.names("done") == ["walk@1"] && spool.names("quarantine") == ["bad", "bad.reason.json"])
    try FileManager.default.moveItem(atPath: spool.path + "/done/walk@1", toPath: spool.path + "/incoming/walk@1")
    #expect(try spool.drain().errors.hasPrefix("1 batch published"))
    #expect(try PublishedSession(session).captured.count == 2)
    #expect(try prune(spool.path, "--sessions", "99d").errors == "nothing to remove\n")
  }

  @Test func lockedSessionIsReportedAndSkipped() throws {
    let lock = open(session, O_RDONLY | O_DIRECTORY)
    defer { close(lock) }
    #expect(flock(lock, LOCK_EX) == 0)
    let result = try prune(spool.path, "--sessions", "1d")
    #expect(result.status == 0 && result.text.isEmpty)
    #expect(result.errors == "\(session): left, another process holds its lock\nnothing to remove\n")
  }

  @Test func invalidAgeIsWrongUsage() throws {
    for age in ["7", "d", "0d", "-1d", "1.5h", "7 d", "99999999999999999w", "1y"] {
      let result = try prune(spool.path, "--done", age)
      #expect(result.status == 64 && result.text.isEmpty, "\(age): \(result.status)")
    }
    for output in [spool.scratch.path("none"), spool.path, spool.path + "/done"] {
      #expect(try prune(spool.path, "--output", output, "--sessions", "1s").status == 64)
    }
    #expect(try names(in: session).count == 5)
  }

  /// `prune` is killed before each call that removes or renames a file. Each session is whole or gone, and the next
  /// `prune` removes the rest.
  @Test func crashAtAnyCallLeavesSessionsWholeOrGone() throws {
    let copies = try (1...40).map { number in
      let copy = spool.scratch.path("copy\(number)")
      try Tool.output("cp", ["-a", spool.path, copy])
      return copy
    }
    // Batches in done/ and quarantine/ must be older than the shortest age.
    usleep(1_200_000)
    var hasEnded = false
    for (index, copy) in copies.enumerated() where !hasEnded {
      let calls = "unlink,unlinkat,rename,renameat,renameat2,rmdir"
      let run = try Tool.run(
        "strace",
        [
          "-qq", "-o", "/dev/null", "-e", "trace=\(calls)", "-e", "inject=\(calls):signal=SIGKILL:when=\(index + 1)",
          EncoderWorker.path, "prune", "--spool", copy, "--done", "1s", "--quarantine", "1s", "--sessions", "1d",
        ])
      hasEnded = run.status == 0
      let walk = copy + "/output/walk"
      if FileManager.default.fileExists(atPath: walk) {
        #expect(try EncoderWorker.run("verify", walk).status == 0)
      }
      let batch = copy + "/done/walk@1"
      if FileManager.default.fileExists(atPath: batch) { #expect(try names(in: batch).count == 2) }
      let quarantined = try names(in: copy + "/quarantine")
      #expect(!quarantined.contains("bad") || quarantined.contains("bad.reason.json"))
      let rest = try prune(copy)
      #expect(rest.status == 0, "\(rest.errors)")
      #expect(try names(in: copy + "/trash").isEmpty)
      #expect(try names(in: copy + "/output").allSatisfy { [".staging", "walk"].contains($0) })
      #expect(try names(in: copy + "/quarantine").count != 1)
    }
    #expect(hasEnded)
  }
}
