import Foundation
import TestSupport
import Testing

@Suite struct CommandTests {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  @Test func helpAndUsage() throws {
    for command in [[], ["run"], ["encode"], ["enqueue"], ["stitch"]] {
      let result = try Tool.run(EncoderWorker.path, command + ["--help"])
      #expect(result.status == 0)
      #expect(result.text.contains("USAGE"))
    }
    for wrong in [
      [], ["--spool"], ["run", "--spool", "x", "--quality", "best"], ["encode", "x"], ["nothing"],
      ["--spool", "x", "--jobs", "0"], ["--spool", "x", "--max-hold", "0"],
      ["encode", "x", "--output", "y", "--shard", "2/2"],
      ["encode", "x", "--output", "y", "--session", "../z"], ["encode", "-", "-", "--output", "y"], ["foo"],
      ["stitch", "x"], ["enqueue", "--spool", "x"], ["run", "--spool", "x", "y"],
    ] {
      let result = try Tool.run(EncoderWorker.path, wrong, in: scratch.url)
      #expect(result.status == 64, "\(wrong): \(result.status)")
      #expect(result.text.isEmpty)
    }
    #expect(try names(in: scratch.path).isEmpty)
  }

  /// The line of `encode --json` for a session.
  private struct Receipt: Decodable {
    let session: String
    let segments, frames: Int
  }

  /// Any line of `encode --json`.
  private struct Line: Decodable {
    /// Each failure has all three.
    struct Failure: Decodable { let file, cause, advice: String }

    /// Nil in the line of a session.
    let error: Failure?
  }

  @Test func archiveFromStandardInputGivesTheSameSession() throws {
    let fixture = Fixture("exact-1fps")
    let archive = try Tool.output("tar", ["-cz", "-C", fixture.path, "."])
    let result = try EncoderWorker.run("encode", "-", "--output", scratch.path("piped"), "--json", input: archive)
    #expect(result.status == 0)
    let receipt = try result.json(as: Receipt.self)
    #expect(receipt.session == "exact-1fps")
    #expect(receipt.segments == 3)
    #expect(receipt.frames == 12)
    let session = try EncoderWorker.encode(fixture, into: scratch)
    for manifest in session.manifests {
      let piped = try Data(contentsOf: URL(fileURLWithPath: scratch.path("piped/exact-1fps/\(manifest.file)")))
      #expect(try piped == Data(contentsOf: URL(fileURLWithPath: session.video(manifest))))
    }
  }

  @Test func aBadBatchDoesNotStopTheOthers() throws {
    let bad = try scratch.file("bad.tar", [1, 2, 3])
    let result = try EncoderWorker.run(
      "encode", bad, Fixture("gap").path, Fixture("rotation").path, "--output", scratch.path("output"))
    #expect(result.status == 65)
    #expect(result.errors.contains("bad.tar: read bad.tar: "))
    let lines = result.text.split(separator: "\n")
    #expect(lines.count == 3 && lines[2] == "2 sessions are in \(scratch.path("output"))")
    #expect(try names(in: scratch.path("output")) == [".staging", "gap", "rotation"])
    let missing = try EncoderWorker.run("encode", scratch.path("nowhere"), "--output", scratch.path("output"))
    #expect(missing.status == 65)
    #expect(missing.errors.contains("nowhere: no such file or directory"))
  }

  @Test func jsonOutputIncludesFailedBatches() throws {
    let bad = try scratch.file("bad.tar", [1, 2, 3])
    let result = try EncoderWorker.run(
      "encode", bad, Fixture("gap").path, scratch.path("nowhere"), "--output", scratch.path("output"), "--json")
    #expect(result.status == 65)
    let lines = try result.jsonLines(as: Line.self)
    #expect(lines.count == 3)
    #expect(Set(lines.compactMap(\.error?.file)) == ["bad.tar", "nowhere"])
  }

  @Test func batchGivenAsADotGetsItsDirectorysName() throws {
    let folder = try scratch.directory("walk@1")
    for name in try names(in: Fixture("jittered").path) {
      try Data(Fixture("jittered").bytes(name)).write(to: URL(fileURLWithPath: folder + "/" + name))
    }
    let encoded = try Tool.run(
      EncoderWorker.path, ["encode", ".", "--output", scratch.path("output")], in: URL(fileURLWithPath: folder))
    #expect(encoded.status == 0, "\(encoded.errors)")
    #expect(try names(in: scratch.path("output")) == [".staging", "walk"])
    try Data(#"{"version":1,"session":"walk"}"#.utf8).write(to: URL(fileURLWithPath: folder + "/batch.json"))
    let queued = try Tool.run(
      EncoderWorker.path, ["enqueue", "--spool", scratch.path("spool"), "."], in: URL(fileURLWithPath: folder))
    #expect(queued.text == "walk@1\n")
    let hidden = try scratch.directory("x.part")
    try Data(#"{"version":1,"session":"walk"}"#.utf8).write(to: URL(fileURLWithPath: hidden + "/batch.json"))
    #expect(try EncoderWorker.run("enqueue", "--spool", scratch.path("spool"), hidden).status == 65)
    #expect(try names(in: scratch.path("spool/incoming")) == ["walk@1"])
  }

  @Test func shardsOfAListAreDisjointAndComplete() throws {
    let batches = ["gap", "rotation", "odd-size", "on-change", "exact-1fps"].map { Fixture($0).path }
    var done: [String] = []
    for shard in 0..<3 {
      let result = try Tool.run(
        EncoderWorker.path,
        ["encode"] + batches + ["--output", scratch.path("output"), "--shard", "\(shard)/3", "--json"])
      #expect(result.status == 0)
      done += result.text.split(separator: "\n").map(String.init)
    }
    #expect(done.count == batches.count)
    #expect(done.allSatisfy { $0.contains(#""duplicate":false"#) })
  }

  @Test func settingsChangeTheVideoAndAreInTheManifest() throws {
    var sizes: [Int] = []
    for quality in ["small", "balanced", "sharp"] {
      let output = scratch.path(quality)
      let result = try EncoderWorker.run("encode", Fixture("exact-1fps").path, "--output", output, "--quality", quality)
      #expect(result.status == 0)
      let session = try PublishedSession(output + "/exact-1fps")
      sizes.append(session.index.bytes)
      let text = try String(contentsOfFile: session.path + "/segment-1767859512340.json", encoding: .utf8)
      #expect(text.contains("\"quality\":\"\(quality)\""))
    }
    #expect(sizes == sizes.sorted() && Set(sizes).count == 3)
    let result = try EncoderWorker.run(
      "encode", Fixture("gap").path, "--output", scratch.path("held"), "--max-hold", "20000")
    #expect(result.status == 0)
    #expect(try PublishedSession(scratch.path("held/gap")).index.gaps.isEmpty)
  }

  /// The profile counts each stage once per use, with and without the sandbox.
  @Test(arguments: ["auto", "off"])
  func profileListsTheTimeOfEachStage(sandbox: String) throws {
    let spool = try TestSpool()
    try spool.add("exact-1fps")
    try spool.add("gap")
    let run = try spool.drain("--profile", "--sandbox", sandbox, "--jobs", "1")
    let rows = run.errors.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
    let start = try #require(rows.firstIndex { $0.first == "stage" })
    let times = rows[(start + 1)...].reduce(into: [:]) { $0[$1[0]] = Int($1[2]) }
    let segments = try ["exact-1fps", "gap"].reduce(0) {
      try $0 + PublishedSession(spool.output + "/" + $1).manifests.count
    }
    let frames = try ["exact-1fps", "gap"].reduce(0) {
      try $0 + PublishedSession(spool.output + "/" + $1).captured.count
    }
    let decoded = try #require(times["decode"])
    #expect(times["open"] == 2 && times["publish"] == 2)
    #expect(times["read"] == frames && times["convert"] == decoded && (1...frames).contains(decoded))
    #expect(times["mux"] == segments && times["write"] == segments)
    #expect(times["sandbox"] == (sandbox == "off" ? nil : decoded))
    #expect(try !spool.drain().errors.contains("stage"))
  }

  @Test func enqueuedFramesFormOneBatch() throws {
    let spool = scratch.path("spool")
    let frames = try names(in: Fixture("jittered").path).map { Fixture("jittered").path + "/" + $0 }
    let result = try Tool.run(EncoderWorker.path, ["enqueue", "--spool", spool, "--session", "walk"] + frames)
    #expect(result.status == 0)
    #expect(result.text == "walk@1767859512340\n")
    #expect(try names(in: spool + "/tmp").isEmpty)
    let batch = spool + "/incoming/walk@1767859512340"
    let copied = try Tool.run("diff", ["-r", "-x", "batch.json", Fixture("jittered").path, batch])
    #expect(copied.status == 0)
    // A session that is named may be continued.
    #expect(try String(contentsOfFile: batch + "/batch.json", encoding: .utf8).contains(#""grows": true"#))
    #expect(try EncoderWorker.run("enqueue", "--spool", spool, Fixture("gap").path).text == "gap\n")
    #expect(try EncoderWorker.run("enqueue", "--spool", spool, Fixture("gap").path).text == "gap.2\n")
    #expect(try EncoderWorker.run("enqueue", "--spool", spool, frames[0]).status == 0)
    #expect(try EncoderWorker.run("--spool", spool, "--drain").status == 0)
    #expect(try PublishedSession(spool + "/output/walk").captured.count == 11)
    #expect(try PublishedSession(spool + "/output/gap").captured.count == 5)
    #expect(try names(in: spool + "/output").count == 4)
  }

  @Test func framesWithoutAnInstantAreNotEnqueued() throws {
    let spool = scratch.path("spool")
    let picture = try scratch.file("screenshot.jpg", try Fixture("single-frame").bytes("1767859512340.jpg"))
    let result = try EncoderWorker.run("enqueue", "--spool", spool, picture)
    #expect(result.status == 65)
    #expect(result.errors.contains("screenshot.jpg: the name is no capture in unix milliseconds"))
    #expect(try EncoderWorker.run("enqueue", "--spool", spool, scratch.path("missing/1767859512340.jpg")).status == 65)
    #expect(try names(in: spool + "/incoming").isEmpty)
    #expect(try names(in: spool + "/tmp").isEmpty)
  }
}
