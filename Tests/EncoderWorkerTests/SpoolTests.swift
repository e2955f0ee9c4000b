import Foundation
import TestSupport
import Testing

@testable import SegmentEncoder

/// A spool that a test fills, and the worker empties.
private struct TestSpool {
  let scratch: ScratchDirectory
  let path: String

  var output: String { path + "/output" }

  init() throws {
    scratch = try ScratchDirectory()
    path = scratch.path("spool")
    _ = try Spool(creating: path)
  }

  /// Puts a batch into `incoming/`, as a producer would.
  func add(_ fixture: String, as name: String? = nil) throws {
    let name = name ?? fixture
    let draft = path + "/tmp/" + name
    try FileManager.default.copyItem(atPath: Fixture(fixture).path, toPath: draft)
    try FileManager.default.moveItem(atPath: draft, toPath: path + "/incoming/" + name)
  }

  func add(file name: String, _ bytes: [UInt8]) throws {
    try Data(bytes).write(to: URL(fileURLWithPath: path + "/incoming/" + name))
  }

  /// A plain batch of two frames, a second apart.
  func addSmall(_ name: String, startMs: Int64, frames: [Int] = [0, 1]) throws {
    let draft = path + "/tmp/" + name
    try FileManager.default.createDirectory(atPath: draft, withIntermediateDirectories: true)
    for (index, frame) in frames.enumerated() {
      let source = Fixture("exact-1fps").path + String(format: "/%04d.jpg", frame)
      try FileManager.default.copyItem(atPath: source, toPath: draft + "/\(startMs + Int64(index) * 1_000).jpg")
    }
    try FileManager.default.moveItem(atPath: draft, toPath: path + "/incoming/" + name)
  }

  @discardableResult
  func drain(_ options: String...) throws -> Tool.Result {
    try Tool.run(EncoderWorker.path, ["--spool", path, "--drain"] + options)
  }

  func names(_ state: String) throws -> [String] {
    try TestSupport.names(in: path + "/" + state)
  }

  var isAtRest: Bool {
    get throws {
      try names("incoming").isEmpty && names("claimed").isEmpty && names("trash").isEmpty
        && TestSupport.names(in: output + "/.staging").isEmpty
    }
  }

  func waitUntil(_ what: String, _ condition: () throws -> Bool) throws {
    for _ in 0..<1_200 {
      if try condition() { return }
      usleep(50_000)
    }
    throw Tool.Failure("still not: \(what)")
  }
}

@Suite struct SpoolTests {
  private let spool: TestSpool

  init() throws { spool = try TestSpool() }

  @Test func aSpoolThatIsNotThereIsMade() throws {
    let path = spool.scratch.path("deep/er/spool")
    let result = try EncoderWorker.run("--spool", path, "--drain")
    #expect(result.status == 0)
    #expect(try Set(names(in: path)).isSuperset(of: ["incoming", "tmp", "quarantine"]))
  }

  @Test func batchesBecomeSessionsAndGo() throws {
    try spool.add("exact-1fps")
    try spool.add("jittered", as: "walk@1")
    let result = try spool.drain()
    #expect(result.status == 0)
    #expect(try spool.isAtRest)
    #expect(try names(in: spool.output) == [".staging", "exact-1fps", "walk"])
    let session = try PublishedSession(spool.output + "/exact-1fps")
    #expect(session.manifests.map(\.durationMs) == [5_000, 5_000, 2_000])
    #expect(session.index.complete)
    let manifest = try String(contentsOfFile: session.path + "/segment-1767859512340.json", encoding: .utf8)
    #expect(manifest.contains(#""metadata":{"app":{"build":45,"version":"1.2.3"},"device":"Fixture 1","ratio":0.1}"#))
  }

  @Test func theSameBatchAgainChangesNothing() throws {
    try spool.add("gap")
    try spool.add("rotation")
    #expect(try spool.drain().status == 0)
    let before = try snapshot(of: spool.output)
    try spool.add("gap", as: "another-name")
    try spool.add("rotation")
    let result = try spool.drain("--quality", "small")
    #expect(result.status == 0)
    #expect(result.errors.contains("2 published before"))
    #expect(try spool.isAtRest)
    #expect(try snapshot(of: spool.output) == before)
    #expect(try spool.drain().status == 0)
    #expect(try snapshot(of: spool.output) == before)
  }

  @Test func sameInputSameBytes() throws {
    for fixture in Fixture.all {
      for output in ["one", "two"] {
        let result = try EncoderWorker.run(
          "encode", fixture.path, "--session", fixture.name, "--output", spool.scratch.path(output))
        #expect(result.status == 0)
      }
    }
    let difference = try Tool.run("diff", ["-r", spool.scratch.path("one"), spool.scratch.path("two")])
    #expect(difference.text == "")
  }

  @Test func twoWorkersPublishEachBatchOnce() throws {
    for number in 0..<200 {
      try spool.addSmall("s\(number % 20)@\(number)", startMs: 1_767_859_512_340 + Int64(number) * 2_000)
    }
    let one = try EncoderWorker.start("--spool", spool.path, "--drain", "--keep-batches")
    let two = try EncoderWorker.start("--spool", spool.path, "--drain", "--keep-batches")
    one.waitUntilExit()
    two.waitUntilExit()
    #expect(one.terminationStatus == 0)
    #expect(two.terminationStatus == 0)
    #expect(try spool.isAtRest)
    #expect(try spool.names("done").count == 200)
    #expect(try spool.names("quarantine").isEmpty)
    var batches: [String] = []
    for session in 0..<20 {
      let published = try PublishedSession(spool.output + "/s\(session)")
      #expect(published.index.segments.map(\.startMs) == published.manifests.map(\.startMs))
      batches += published.manifests.map(\.batch)
    }
    #expect(batches.count == 200)
    #expect(Set(batches).count == 200)

    let before = try snapshot(of: spool.output)
    for name in try spool.names("done") {
      try FileManager.default.moveItem(atPath: spool.path + "/done/" + name, toPath: spool.path + "/incoming/" + name)
    }
    #expect(try spool.drain().status == 0)
    #expect(try spool.isAtRest)
    #expect(try snapshot(of: spool.output) == before)
  }

  @Test func whatIsNotThereYetStays() throws {
    try spool.add("single-frame", as: ".hidden")
    try spool.add("single-frame", as: "x.tmp")
    try spool.add("single-frame", as: "y.part")
    #expect(try spool.drain().status == 0)
    #expect(try spool.names("incoming") == [".hidden", "x.tmp", "y.part"])
    #expect(!FileManager.default.fileExists(atPath: spool.output + "/x.tmp"))
  }

  @Test func publishedBatchesAreKeptOnRequest() throws {
    try spool.add("odd-size")
    try spool.drain("--keep-batches")
    try spool.add("odd-size")
    try spool.drain("--keep-batches")
    #expect(try spool.names("done") == ["odd-size", "odd-size.2"])
    let difference = try Tool.run("diff", ["-r", Fixture("odd-size").path, spool.path + "/done/odd-size.2"])
    #expect(difference.status == 0)
  }

  @Test func batchesOfOneSessionMeetInSeamsWhateverTheirOrder() throws {
    let start: Int64 = 1_767_859_512_340
    // Two seconds each; the second comes 400 ms early, the third 300 ms late, and first of all.
    try spool.addSmall("s@c", startMs: start + 1_600 + 2_300, frames: [4, 5])
    #expect(try spool.drain().status == 0)
    try spool.addSmall("s@b", startMs: start + 1_600, frames: [2, 3])
    try spool.addSmall("s@a", startMs: start, frames: [0, 1])
    #expect(try spool.drain().status == 0)
    let session = try PublishedSession(spool.output + "/s")
    #expect(session.index.gaps.isEmpty)
    #expect(session.manifests.count == 3)
    let film = spool.scratch.path("film.mp4")
    try stitch(session.path, to: film)
    let pts = try Probe(film).packets(of: 0).map(\.pts)
    for frame in session.captured { #expect(pts.contains((frame.timeMs - start) * 90)) }
    #expect(pts == pts.sorted())
  }

  @Test func aBatchThatOverlapsPublishedTimeIsAConflict() throws {
    let start: Int64 = 1_767_859_512_340
    try spool.addSmall("s@a", startMs: start)
    #expect(try spool.drain().status == 0)
    let before = try snapshot(of: spool.output)
    try spool.addSmall("s@same-start", startMs: start, frames: [2, 3])
    try spool.addSmall("s@inside", startMs: start + 1_200)
    try spool.addSmall("s@before", startMs: start - 1_400)
    let result = try spool.drain("--jobs", "1")
    #expect(result.status == 65)
    #expect(try snapshot(of: spool.output) == before)
    #expect(
      try spool.names("quarantine").filter { !$0.hasSuffix(".reason.json") } == [
        "s@before", "s@inside", "s@same-start",
      ])
    let reason = try String(contentsOfFile: spool.path + "/quarantine/s@inside.reason.json", encoding: .utf8)
    #expect(reason.contains("overlaps segment-1767859512340.mp4"))
  }

  @Test func theQueueIsWatched() throws {
    let worker = try EncoderWorker.start("--spool", spool.path)
    defer { worker.terminate() }
    try spool.waitUntil("claimed/ is there") { !(try spool.names("claimed").isEmpty) }
    try spool.add("single-frame", as: "live@1")
    try spool.waitUntil("published") {
      FileManager.default.fileExists(atPath: spool.output + "/live/session.ffconcat")
    }
    try spool.waitUntil("retired") { try spool.names("trash").isEmpty }
    kill(worker.processIdentifier, SIGTERM)
    worker.waitUntilExit()
    #expect(worker.terminationReason == .exit)
    #expect(worker.terminationStatus == 0)
    #expect(try spool.isAtRest)
  }
}

@Suite struct BadInputTests {
  private let spool: TestSpool

  init() throws { spool = try TestSpool() }

  private struct Reason: Decodable {
    let format: String, batch: String, operation: String, file: String, cause: String, advice: String
  }

  private func reason(_ name: String) throws -> Reason {
    let path = spool.path + "/quarantine/\(name).reason.json"
    return try JSONDecoder().decode(Reason.self, from: Data(contentsOf: URL(fileURLWithPath: path)))
  }

  @Test func eachBadBatchIsKeptWithItsReasonAndTheRestIsEncoded() throws {
    let incoming = spool.path + "/incoming/"
    let files = FileManager.default
    try files.createDirectory(atPath: incoming + "empty", withIntermediateDirectories: false)
    try files.createDirectory(atPath: incoming + "undecodable", withIntermediateDirectories: false)
    try Data("no image".utf8).write(to: URL(fileURLWithPath: incoming + "undecodable/1767859512340.jpg"))
    try files.createDirectory(atPath: incoming + "no-frames", withIntermediateDirectories: false)
    try Data("hello".utf8).write(to: URL(fileURLWithPath: incoming + "no-frames/readme.txt"))
    try spool.add(file: "unknown.bin", Array("what is this".utf8))
    try spool.add(file: "empty-file", [])
    for (name, json) in [
      ("broken-json", "{\"version\":1,"),
      (
        "bad-session",
        #"{"version":1,"session":"../up","frames":[{"file":"1767859512340.jpg","timeMs":1767859512340}]}"#
      ),
    ] {
      try spool.add("single-frame", as: name)
      try Data(json.utf8).write(to: URL(fileURLWithPath: incoming + name + "/batch.json"))
    }
    try spool.add("single-frame", as: "bad session")
    let whole = spool.scratch.path("whole.tar.gz")
    try Tool.output("tar", ["-caf", whole, "-C", Fixture("jittered").path, "."])
    let archive = Array(try Data(contentsOf: URL(fileURLWithPath: whole)))
    try spool.add(file: "truncated.tar.gz", Array(archive.prefix(archive.count / 2)))
    symlink("/etc", incoming + "link")
    mkfifo(incoming + "fifo", 0o600)
    let bad = try spool.names("incoming")
    let copy = spool.scratch.path("copy")
    try Tool.output("cp", ["-a", incoming, copy])
    try spool.add("exact-1fps")
    try spool.add("corrupt-frames", as: "walk@1")

    let result = try spool.drain()
    #expect(result.status == 65)
    #expect(result.errors.contains("\(bad.count) batches in quarantine"))
    #expect(try spool.names("quarantine").filter { !$0.hasSuffix(".reason.json") } == bad)
    #expect(try spool.isAtRest)
    #expect(try names(in: spool.output) == [".staging", "exact-1fps", "walk"])
    for name in bad {
      let reason = try reason(name)
      #expect(reason.format == "quarantine-reason/1")
      #expect(reason.batch == name)
      #expect(!reason.operation.isEmpty && !reason.file.isEmpty && !reason.cause.isEmpty && !reason.advice.isEmpty)
      if name != "fifo" {
        let kept = try Tool.run(
          "diff", ["-r", "--no-dereference", copy + "/" + name, spool.path + "/quarantine/" + name])
        #expect(kept.status == 0, "\(name): \(kept.text)")
      }
    }
    #expect(try reason("empty").cause == "nothing in it")
    #expect(try reason("undecodable").cause.contains("decode 1767859512340.jpg: neither JPEG nor PNG"))
    #expect(try reason("broken-json").cause.hasPrefix("not JSON"))
    #expect(try reason("bad-session").cause == "the session id \"../up\" cannot be used")
    #expect(try reason("bad session").cause == "the session id \"bad session\" cannot be used")
    #expect(try reason("truncated.tar.gz").cause.hasPrefix("the archive breaks off"))
    #expect(try reason("link").cause == "not a regular file")
    #expect(try reason("empty-file").cause == "an empty file")
  }

  @Test func aNameThatIsTakenInQuarantineGetsASuffix() throws {
    for content in ["a", "b", "c"] {
      try spool.add(file: "bad", Array(content.utf8))
      #expect(try spool.drain().status == 65)
    }
    #expect(
      try spool.names("quarantine") == [
        "bad", "bad.2", "bad.2.reason.json", "bad.3", "bad.3.reason.json", "bad.reason.json",
      ])
    #expect(try String(contentsOfFile: spool.path + "/quarantine/bad.2", encoding: .utf8) == "b")
  }

  @Test func namesOfAnyBytesAndAnyLengthAreHandled() throws {
    let long = String(repeating: "n", count: 255)
    try spool.add(file: long, [1])
    let raw: [CChar] = Array((spool.path + "/incoming/").utf8).map { CChar(bitPattern: $0) } + [-1, 65, 0]
    #expect(mkdir(raw, 0o755) == 0)
    try spool.add("single-frame")
    #expect(try spool.drain().status == 65)
    #expect(try spool.isAtRest)
    let names = try spool.names("quarantine")
    #expect(names.count == 4)
    #expect(names.contains("%FFA"))
    #expect(FileManager.default.fileExists(atPath: spool.output + "/single-frame/session.json"))
  }

  @Test func refusedFramesAreReportedAndTheOneBeforeHoldsOn() throws {
    let scratch = try ScratchDirectory()
    let session = try EncoderWorker.encode(Fixture("corrupt-frames"), into: scratch)
    let manifest = try #require(session.manifests.first)
    #expect(manifest.frames.map(\.source) == ["1767859512340.jpg", "1767859514340.jpg", "1767859516340.jpg"])
    #expect(manifest.frames.map(\.holdMs) == [2_000, 2_000, 1_000])
    let refused = session.manifests.flatMap(\.refused)
    #expect(refused.map(\.source) == ["1767859513340.jpg", "1767859515340.jpg", "1767859517340.jpg"])
    #expect(
      refused.map(\.reason) == [
        "decode 1767859513340.jpg: invalid data", "decode 1767859515340.jpg: an empty file",
        "decode 1767859517340.jpg: neither JPEG nor PNG",
      ])
    // The last capture was refused, but it says that the session went on until then.
    #expect(session.index.durationMs == 6_000)
  }
}

@Suite struct StopTests {
  private let spool: TestSpool

  init() throws {
    spool = try TestSpool()
  }

  /// A batch of large pictures that takes a while.
  private func addLarge(_ name: String, frames: Int) throws {
    let draft = spool.path + "/tmp/" + name
    try FileManager.default.createDirectory(atPath: draft, withIntermediateDirectories: true)
    for picture in 0..<2 {
      try Tool.output(
        "ffmpeg",
        [
          "-v", "error", "-f", "lavfi", "-i", "testsrc2=s=2400x3200", "-vf", "hue=h=\(90 * picture)", "-frames:v", "1",
          spool.scratch.path("large-\(picture).png"),
        ])
    }
    for frame in 0..<frames {
      link(spool.scratch.path("large-\(frame % 2).png"), draft + "/\(1_767_859_512_340 + frame * 1_000).png")
    }
    try FileManager.default.moveItem(atPath: draft, toPath: spool.path + "/incoming/" + name)
  }

  private func start(_ options: String...) throws -> Process {
    let worker = Process()
    worker.executableURL = URL(fileURLWithPath: EncoderWorker.path)
    worker.arguments = ["--spool", spool.path] + options
    worker.standardError = FileHandle.nullDevice
    try worker.run()
    try spool.waitUntil("claimed") { try spool.names("incoming").isEmpty }
    return worker
  }

  @Test func whatIsHeldIsHandedBack() throws {
    try addLarge("slow", frames: 1_000)
    let worker = try start()
    kill(worker.processIdentifier, SIGTERM)
    worker.waitUntilExit()
    #expect(worker.terminationReason == .exit)
    #expect(worker.terminationStatus == 0)
    #expect(try spool.names("incoming") == ["slow"])
    #expect(try names(in: spool.path + "/incoming/slow").count == 1_000)
    #expect(try spool.names("claimed").isEmpty)
    #expect(try names(in: spool.output) == [".staging"])
    #expect(try names(in: spool.output + "/.staging").isEmpty)
  }

  @Test func aSecondSignalEndsAtOnceAndTheNextWorkerTakesOver() throws {
    try addLarge("slow", frames: 40)
    let worker = try start()
    kill(worker.processIdentifier, SIGINT)
    usleep(200_000)
    kill(worker.processIdentifier, SIGINT)
    worker.waitUntilExit()
    #expect(worker.terminationReason == .exit)
    #expect(worker.terminationStatus == 0)
    #expect(try spool.drain().status == 0)
    #expect(try spool.isAtRest)
    #expect(try PublishedSession(spool.output + "/slow").captured.count == 40)
  }

  @Test func aKilledWorkersBatchIsTakenOverAtOnce() throws {
    try addLarge("slow", frames: 20)
    let worker = try start("--drain")
    kill(worker.processIdentifier, SIGKILL)
    worker.waitUntilExit()
    #expect(try spool.names("claimed").count == 1)
    #expect(try spool.drain().status == 0)
    #expect(try spool.isAtRest)
    #expect(try PublishedSession(spool.output + "/slow").captured.count == 20)
  }

  @Test func aBatchThatKillsThreeWorkersIsQuarantined() throws {
    try addLarge("slow", frames: 200)
    for _ in 0..<3 {
      let worker = Process()
      worker.executableURL = URL(fileURLWithPath: EncoderWorker.path)
      worker.arguments = ["--spool", spool.path]
      worker.standardError = FileHandle.nullDevice
      try worker.run()
      try spool.waitUntil("claimed by it") {
        try spool.names("claimed").contains { $0.contains("~\(worker.processIdentifier)~") && !$0.hasPrefix(".") }
          && spool.names("claimed").filter { !$0.hasPrefix(".") }.count == 1
          && FileManager.default.subpaths(atPath: spool.path + "/claimed")?.contains { $0.hasSuffix("/slow") } == true
          && spool.names("incoming").isEmpty
      }
      kill(worker.processIdentifier, SIGKILL)
      worker.waitUntilExit()
    }
    #expect(try spool.drain().status == 65)
    let reason = try String(contentsOfFile: spool.path + "/quarantine/slow.reason.json", encoding: .utf8)
    #expect(reason.contains("3 workers died"))
  }

  @Test func aFailingMachineIsNotTheBatchesFault() throws {
    try spool.add("single-frame")
    for output in ["/dev/null/x", "/proc/none"] {
      let result = try spool.drain("--output", output)
      #expect([74, 75].contains(result.status))
      #expect(result.errors.contains("mkdir \(output.prefix(6))"))
      #expect(try spool.names("incoming") == ["single-frame"])
      #expect(try spool.names("quarantine").isEmpty)
    }
    #expect(try spool.drain().status == 0)
  }
}
