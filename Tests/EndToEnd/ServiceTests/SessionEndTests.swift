import Foundation
import TestSupport
import Testing

/// The end of a session: by a final batch, by `end`, and by `--end-after`; and what becomes of a late batch.
@Suite struct SessionEndTests {
  private static let startMs: Int64 = 1_767_859_512_340

  private let spool: TestSpool

  init() throws { spool = try TestSpool() }

  /// A line of `run --json`, as far as these tests read it.
  private struct Line: Decodable {
    let event: String
    let key: String
    var session: String?
    var cause: String?
    var frames: Int?
  }

  private struct Index: Decodable {
    let complete: Bool
    let frames: Int
  }

  private func index(_ session: String, in output: String? = nil) throws -> Index {
    let path = (output ?? spool.output) + "/\(session)/session.json"
    return try JSONDecoder().decode(Index.self, from: Data(contentsOf: URL(fileURLWithPath: path)))
  }

  private func add(_ number: Int, isFinal: Bool = false) throws {
    let startMs = Self.startMs + Int64(number) * 2_000
    guard isFinal else { return try spool.addSmall("s@\(number)", startMs: startMs) }
    try spool.addSmall(".draft", startMs: startMs)
    let draft = spool.path + "/incoming/.draft"
    try Data(#"{"version": 1, "session": "s", "final": true}"#.utf8)
      .write(to: URL(fileURLWithPath: draft + "/batch.json"))
    try FileManager.default.moveItem(atPath: draft, toPath: spool.path + "/incoming/s@\(number)")
  }

  private func ends(in result: Tool.Result) throws -> [Line] {
    try result.jsonLines(as: Line.self).filter { $0.event == "session.ended" }
  }

  private func playlistHasEnded() throws -> Bool {
    try String(contentsOfFile: spool.output + "/s/hls/session.m3u8", encoding: .utf8).hasSuffix("#EXT-X-ENDLIST\n")
  }

  @Test func finalBatchEndsItsSessionOnce() throws {
    try add(0)
    try add(1, isFinal: true)
    let first = try spool.drain("--json", "--hls")
    let told = try ends(in: first)
    #expect(told.count == 1 && told.first?.cause == "final" && told.first?.session == "s")
    let schema = try JSONSchema("docs/event.schema.json")
    for line in first.text.split(separator: "\n") where line.contains("session.ended") {
      #expect(try schema.faults(of: line) == [])
      #expect(try !schema.faults(of: line.replacing("\"cause\":\"final\"", with: "\"cause\":\"x\"")).isEmpty)
    }
    #expect(try index("s").complete && playlistHasEnded())
    // A late batch is published, and reopens nothing.
    try add(2)
    let second = try spool.drain("--json", "--hls")
    #expect(try second.jsonLines(as: Line.self).map(\.event) == ["batch.published"])
    #expect(try index("s").complete && index("s").frames == 6 && playlistHasEnded())
    // The playlist before the late batch has files that stay for a while.
    #expect(try names(in: spool.output).allSatisfy { ["s", ".staging", ".superseded"].contains($0) })
  }

  /// The directory of one session cannot be made.
  @Test func sessionThatCannotBeWrittenHoldsUpNoOtherEnd() throws {
    try add(0)
    try FileManager.default.createDirectory(atPath: spool.output, withIntermediateDirectories: true)
    try Data().write(to: URL(fileURLWithPath: spool.output + "/stuck"))
    try spool.addSmall("stuck@0", startMs: Self.startMs)
    for session in ["s", "stuck"] { #expect(try EncoderWorker.run("end", session, "--spool", spool.path).status == 0) }
    let result = try spool.drain("--json", verifying: false)
    #expect(try ends(in: result).map(\.session) == ["s"], "\(result.errors)")
    #expect(result.status == 74 || result.status == 75, "\(result.status)")
    #expect(try index("s").complete && names(in: spool.output + "/.ending") == ["stuck.json"])
    try FileManager.default.removeItem(atPath: spool.output + "/stuck")
    #expect(try ends(in: spool.drain("--json")).map(\.session) == ["stuck"])
  }

  @Test func endOfADirectoryHappensAtOnceAndIsToldOnce() throws {
    try add(0)
    try spool.drain("--hls")
    #expect(try !playlistHasEnded())
    let end = try EncoderWorker.run("end", "s", "--output", spool.output, "--json")
    #expect(end.status == 0 && end.text.hasPrefix("{") && end.text.contains(#""state":"ended""#), "\(end.errors)")
    #expect(try index("s").complete && playlistHasEnded())
    #expect(try EncoderWorker.run("verify", spool.output + "/s").status == 0)
    let told = try ends(in: spool.drain("--json"))
    #expect(told.count == 1 && told.first?.cause == "request")
    #expect(try ends(in: spool.drain("--json")).isEmpty)
    let again = try EncoderWorker.run("end", "s", "--output", spool.output)
    #expect(again.status == 0 && again.text.contains("s: it had ended at") && again.errors.isEmpty)
    #expect(again.text.hasSuffix("\ns: ended, in \(spool.output)/s\n"), "\(again.text)")
  }

  /// The disk is full from some call on that gives a file its name.
  @Test func endThatAFullDiskCutOffIsFinishedByTheNext() throws {
    try add(0)
    try spool.drain("--hls")
    var isCutOff = true
    var index = 0
    while isCutOff && index < 50 {
      index += 1
      let copy = spool.scratch.path("copy")
      try? FileManager.default.removeItem(atPath: copy)
      try Tool.output("cp", ["-a", spool.path, copy])
      let calls = "rename,renameat,renameat2"
      let end = try Tool.run(
        "strace",
        [
          "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(calls)", "-e", "inject=\(calls):error=ENOSPC:when=\(index)+",
          EncoderWorker.path, "end", "s", "--output", copy + "/output",
        ])
      isCutOff = end.status != 0
      let again = try EncoderWorker.run("end", "s", "--output", copy + "/output")
      #expect(again.status == 0, "call \(index): \(again.errors)")
      #expect(try self.index("s", in: copy + "/output").complete, "call \(index)")
      let playlist = try String(contentsOfFile: copy + "/output/s/hls/session.m3u8", encoding: .utf8)
      #expect(playlist.hasSuffix("#EXT-X-ENDLIST\n"), "call \(index)")
      let told = try ends(in: Tool.run(EncoderWorker.path, ["--spool", copy, "--drain", "--json"]))
      #expect(told.map(\.cause) == ["request"], "call \(index)")
    }
    #expect(!isCutOff && index > 4)
  }

  @Test func endOfASpoolWaitsForTheBatchesBeforeIt() throws {
    for number in 0..<3 { try add(number) }
    let end = try EncoderWorker.run("end", "s", "--spool", spool.path, "--output", spool.scratch.path("none"))
    #expect(end.status != 0 && end.errors.contains("no directory"))
    let request = try EncoderWorker.run("end", "s", "--spool", spool.path)
    #expect(request.text == "s: the next worker ends it after 3 batches\n" && request.errors.isEmpty)
    let lines = try spool.drain("--json", "--jobs", "1").jsonLines(as: Line.self)
    #expect(lines.map(\.event) == Array(repeating: "batch.published", count: 3) + ["session.ended"])
    #expect(lines.last?.frames == 6)
    #expect(try index("s").complete)
  }

  @Test func quietSessionEndsAndALateBatchIsPublished() throws {
    let receiver = try ReceiverServer()
    try add(0)
    let worker = try spool.start("--end-after", "1", "--hls", "--notify", receiver.url)
    try spool.waitUntil("the session has ended") {
      try receiver.accepted().contains { $0.body.contains(#""event":"session.ended""#) }
    }
    #expect(try index("s").complete && playlistHasEnded())
    try add(1)
    try spool.waitUntil("the late batch is published") { try index("s").frames == 4 && spool.names("incoming").isEmpty }
    try spool.waitUntil("the playlist has ended again") { try playlistHasEnded() && index("s").complete }
    worker.signal(SIGTERM)
    #expect(try worker.wait() == 0)
    #expect(try receiver.accepted().count { $0.body.contains("session.ended") } == 1)
  }

  @Test func unknownSessionsDoNotEnd() throws {
    try add(0)
    try spool.drain()
    let end = try EncoderWorker.run("end", "S", "--output", spool.output)
    #expect(end.status == 65 && end.errors.contains("nothing of it is published") && end.errors.contains("there is s"))
    let request = try EncoderWorker.run("end", "other", "--spool", spool.path)
    #expect(request.status == 0)
    let run = try spool.drain("--json")
    #expect(run.text.isEmpty && run.errors.contains("session.unknown"))
    // The request stays: the first batch may be on its way.
    #expect(try names(in: spool.output + "/.ending") == ["other.json"])
    try spool.addSmall("other@0", startMs: Self.startMs)
    #expect(try ends(in: spool.drain("--json")).count == 1)
  }

  /// Sets the times of all manifests to two hours ago.
  private func age(_ output: String) throws {
    for name in try names(in: output + "/s") where name.hasPrefix("segment-") && name.hasSuffix(".json") {
      try FileManager.default.setAttributes(
        [.modificationDate: Date(timeIntervalSinceNow: -7_200)], ofItemAtPath: "\(output)/s/\(name)")
    }
  }

  private func isThere(_ output: String) -> Bool { FileManager.default.fileExists(atPath: output + "/s/session.json") }

  @Test func drainThatRemovesASessionAnnouncesItsEndFirst() throws {
    try add(0)
    try spool.drain()
    try age(spool.output)
    let told = try ends(in: spool.drain("--json", "--retain", "1h"))
    #expect(told.map(\.cause) == ["quiet"] && told.first?.frames == 2 && !isThere(spool.output))
  }

  /// `prune` is killed before each call that makes or removes a name. The session goes after its end was announced, once.
  @Test func pruneRemovesASessionAfterAWorkerHasAnnouncedItsEnd() throws {
    try add(0)
    try spool.drain("--hls")
    try age(spool.output)
    let calls = "link,linkat,unlink,unlinkat,rename,renameat,renameat2,rmdir,mkdir,mkdirat"
    var (isKilled, index) = (true, 0)
    while isKilled && index < 200 {
      index += 1
      let copy = spool.scratch.path("copy")
      let output = copy + "/output"
      try? FileManager.default.removeItem(atPath: copy)
      try Tool.output("cp", ["-a", spool.path, copy])
      func prune() throws -> Tool.Result { try EncoderWorker.run("prune", "--spool", copy, "--sessions", "1h") }
      func tell() throws -> [Line] {
        try ends(in: Tool.run(EncoderWorker.path, ["--spool", copy, "--drain", "--json"]))
      }
      let run = try Tool.run(
        "strace",
        [
          "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(calls)", "-e", "inject=\(calls):signal=SIGKILL:when=\(index)",
          EncoderWorker.path, "prune", "--spool", copy, "--sessions", "1h",
        ])
      isKilled = run.status != 0
      #expect(isThere(output), "call \(index)")
      var told = try tell()
      #expect(isThere(output), "call \(index)")
      if told.isEmpty {
        let second = try prune()
        #expect(second.status == 0 && second.errors.contains("has ended") && isThere(output), "\(second.errors)")
        let playlist = try String(contentsOfFile: output + "/s/hls/session.m3u8", encoding: .utf8)
        #expect(try playlist.hasSuffix("#EXT-X-ENDLIST\n") && self.index("s", in: output).complete, "call \(index)")
        told = try tell()
      }
      #expect(told.map(\.cause) == ["quiet"], "call \(index)")
      #expect(try prune().status == 0 && !isThere(output), "call \(index)")
      #expect(try tell().isEmpty, "call \(index)")
    }
    #expect(!isKilled && index > 4)
  }

  /// The worker is killed before each call that makes or removes a name. The next worker ends the session, and tells of it with the
  /// same key.
  @Test func crashAtAnyCallLosesNoEnd() throws {
    try add(0)
    try spool.drain()
    try add(1, isFinal: true)
    let calls = "link,linkat,unlink,unlinkat,rename,renameat,renameat2,rmdir,mkdir,mkdirat"
    var hasEnded = false
    var index = 0
    while !hasEnded && index < 200 {
      index += 1
      let copy = spool.scratch.path("copy")
      try? FileManager.default.removeItem(atPath: copy)
      try Tool.output("cp", ["-a", spool.path, copy])
      let run = try Tool.run(
        "strace",
        [
          "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(calls)", "-e", "inject=\(calls):signal=SIGKILL:when=\(index)",
          EncoderWorker.path, "--spool", copy, "--drain", "--json", "--jobs", "1",
        ])
      hasEnded = run.status == 0
      let rest = try Tool.run(EncoderWorker.path, ["--spool", copy, "--drain", "--json"])
      #expect(rest.status == 0, "\(index): \(rest.errors)")
      let told = try ends(in: run) + ends(in: rest)
      #expect(!told.isEmpty && Set(told.map(\.key)).count == 1, "call \(index): told \(told.count) times")
      #expect(try self.index("s", in: copy + "/output").complete, "call \(index)")
      #expect(try EncoderWorker.run("verify", copy + "/output/s").status == 0)
      let left = try names(in: copy + "/output").filter { ![".staging", "s"].contains($0) }
      #expect(left.isEmpty, "call \(index): \(left)")
    }
    #expect(hasEnded && index > 4)
  }
}
