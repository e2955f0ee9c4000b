import Foundation
import TestSupport
import Testing

/// Batches whose names have the session: `--session-from`.
@Suite struct SessionFromTests {
  private static let startMs: Int64 = 1_767_859_512_000
  private static let pattern = "{session}-{part}"

  private let spool: TestSpool
  private var scratch: ScratchDirectory { spool.scratch }
  private var output: String { scratch.path("out") }

  init() throws { spool = try TestSpool() }

  /// Writes an archive of three pictures, one a second; part *n* begins where part *n* − 1 ends.
  @discardableResult
  private func archive(_ name: String, part: Int, in place: String = "in") throws -> String {
    let folder = "pictures-\(UUID().uuidString)"
    _ = try scratch.directory(folder)
    for index in 0..<3 {
      let bytes = try Fixture("exact-1fps").bytes(String(format: "%04d.jpg", (part * 3 + index) % 10))
      try scratch.file("\(folder)/\(Self.startMs + Int64(part * 3 + index) * 1_000).jpg", bytes)
    }
    let path = try scratch.directory(place) + "/" + name
    try Tool.output("tar", ["-czf", path + ".tmp", "-C", scratch.path(folder), "."])
    try FileManager.default.moveItem(atPath: path + ".tmp", toPath: path)
    return path
  }

  private func parts(_ session: String, _ numbers: Range<Int> = 0..<3, in place: String = "in") throws -> [String] {
    try numbers.map { try archive("\(session)-\($0).tar.gz", part: $0, in: place) }
  }

  private func run(_ words: String..., environment: [String: String] = [:]) throws -> Tool.Result {
    try Tool.run(EncoderWorker.path, words, in: scratch.url, environment: environment)
  }

  private func sessions(in output: String) throws -> [String] {
    try names(in: output).filter { !$0.hasPrefix(".") }
  }

  /// Expects one session of nine seconds, as `verify`, `stitch` and stock ffprobe see it.
  private func expectWhole(_ output: String) throws {
    #expect(try sessions(in: output) == ["s01"])
    let session = try PublishedSession(output + "/s01")
    #expect(session.captured.map(\.timeMs) == (0..<Int64(9)).map { Self.startMs + $0 * 1_000 })
    #expect(session.index.gaps == [] && session.index.durationMs == 9_000)
    let verified = try run("verify", session.path)
    #expect(verified.status == 0, "\(verified.errors)")
    let film = scratch.path("film-\(UUID().uuidString).mp4")
    let stitched = try run("stitch", session.path, "--to", film)
    #expect(stitched.status == 0, "\(stitched.errors)")
    let words = ["-v", "error", "-select_streams", "v:0", "-show_entries", "stream=duration", "-of", "csv=p=0", film]
    let duration = String(decoding: try Tool.output("ffprobe", words), as: UTF8.self)
    #expect(Double(duration.trimmingCharacters(in: .whitespacesAndNewlines)) == 9, "\(duration)")
  }

  @Test func workerMakesOneSessionOfNumberedArchives() throws {
    _ = try parts("s01", in: "spool/incoming")
    let result = try spool.drain("--session-from", Self.pattern, "--jobs", "2")
    #expect(result.status == 0 && !result.errors.contains("warning"), "\(result.errors)")
    try expectWhole(spool.output)
    // The same batches again are duplicates.
    _ = try parts("s01", in: "spool/incoming")
    let again = try spool.drain("--session-from", Self.pattern)
    #expect(again.status == 0 && again.errors.contains("3 published before"), "\(again.errors)")
    try expectWhole(spool.output)
  }

  @Test func inspectShowsTheSession() throws {
    _ = try parts("s01")
    struct Line: Decodable { let session: String, warnings: [String] }
    let paths = ["in/s01-0.tar.gz", "in/s01-1.tar.gz", "in/s01-2.tar.gz"]
    let apart = try run("encode", "--dry-run", paths[0], paths[1], paths[2], "--json")
    #expect(try apart.jsonLines(as: Line.self).map(\.session) == ["s01-0", "s01-1", "s01-2"])
    let joined = try run("encode", "--dry-run", paths[0], paths[1], paths[2], "--json", "--session-from", Self.pattern)
    #expect(try joined.jsonLines(as: Line.self).allSatisfy { $0.session == "s01" && $0.warnings == [] })
    #expect(joined.errors == "", "\(joined.errors)")
    // A name that does not fit keeps its session, and the receipt says so.
    let other = try run("encode", paths[0], "-o", "out", "--json", "--session-from", "{session}_{part}")
    let receipt = try #require(try other.jsonLines(as: Line.self).first)
    #expect(receipt.session == "s01-0" && receipt.warnings.count == 1)
    #expect(receipt.warnings[0].contains("s01-0 does not fit --session-from '{session}_{part}'"))
    #expect(other.errors.contains(receipt.warnings[0]), "\(other.errors)")
  }

  @Test func foldersOfAPathTellTheSession() throws {
    try archive("0.tar.gz", part: 0, in: "in/s01")
    try archive("1.tar.gz", part: 1, in: "in/s01")
    try archive("2.tar.gz", part: 2, in: "in/s01")
    let paths = ["0", "1", "2"].map { scratch.path("in/s01/\($0).tar.gz") }
    let joined = try Tool.run(
      EncoderWorker.path, ["encode"] + paths + ["--session-from", "{session}/{part}", "--output", output])
    #expect(joined.status == 0, "\(joined.errors)")
    try expectWhole(output)
    // Batches of a spool have no folders.
    let worker = try run("--spool", spool.path, "--drain", "--session-from", "{session}/*")
    #expect(worker.status == 64 && worker.errors.contains("'{session}/*' has folders"), "\(worker.errors)")
  }

  @Test func filmShowsTheInputsOfOneSession() throws {
    let paths = try parts("s01") + parts("s02", 3..<4)
    let film = scratch.path("film.mp4")
    struct Film: Decodable { let session: String, durationMs: Int64 }
    let option = ["--session-from", Self.pattern, "--to", film, "--json"]
    let result = try Tool.run(EncoderWorker.path, ["film"] + paths[..<3] + option)
    #expect(result.status == 0, "\(result.errors)")
    let made = try result.json(as: Film.self)
    #expect(made.session == "s01" && made.durationMs == 9_000)
    let mixed = try Tool.run(EncoderWorker.path, ["film"] + paths + option)
    #expect(mixed.status == 65 && mixed.errors.contains("the film shows session s01"), "\(mixed.errors)")
  }

  @Test func collectAndEnqueueReadTheNamesOfFolders() throws {
    for (folder, second) in [("KIOSK7-cam", 0), ("KIOSK7-1", 100)] {
      _ = try scratch.directory(folder)
      for index in 0..<2 {
        let bytes = try Fixture("exact-1fps").bytes("000\(index).jpg")
        try scratch.file("\(folder)/\(Self.startMs + Int64(second + index) * 1_000).jpg", bytes)
      }
    }
    let collector = try RunningWorker(
      [
        "collect", scratch.path("KIOSK7-cam"), "--spool", spool.path, "--batch-every", "1", "--end-after-pause", "1",
        "--session-from",
        "{session}-cam",
      ])
    try spool.waitUntil("collected") { try !spool.names("incoming").isEmpty }
    collector.signal(SIGTERM)
    try #require(try collector.wait() == 0)
    #expect(try spool.names("incoming").allSatisfy { $0.hasPrefix("KIOSK7@") })
    let enqueued = try run("enqueue", "KIOSK7-1", "--spool", spool.path, "--session-from", Self.pattern)
    #expect(enqueued.status == 0 && enqueued.text == "KIOSK7@\(Self.startMs + 100_000)\n", "\(enqueued.errors)")
    // The names of these batches say the session. A worker with another pattern leaves them alone.
    #expect(try spool.drain("--session-from", "{session}_{part}").status == 0)
    #expect(try sessions(in: spool.output) == ["KIOSK7"])
    // A folder whose name does not fit is taken as without the option.
    let other = try run("enqueue", "KIOSK7-1", "--spool", spool.path, "--session-from", "{session}_{part}")
    #expect(other.status == 0 && !other.text.hasPrefix("KIOSK7"), "\(other.text)")
    let warning = "the name KIOSK7-1 does not fit --session-from '{session}_{part}', so the session is a new one"
    #expect(other.errors.contains(warning), "\(other.errors)")
  }

  @Test func deletedSessionTakesItsBatchesByTheirNames() throws {
    _ = try parts("s01", in: "spool/incoming")
    #expect(try spool.drain("--session-from", Self.pattern, "--keep-batches").status == 0)
    // One that waits, one in quarantine that cannot be read, and others of another session.
    try archive("s01-3.tar.gz", part: 3, in: "spool/incoming")
    try archive("s01-4_2.tar.gz", part: 4, in: "spool/incoming")
    try archive("s02-3.tar.gz", part: 3, in: "spool/incoming")
    try scratch.file("spool/quarantine/s01-9.tar.gz", [1, 2, 3])
    // Without the option, a batch by name is another session's: it stays, and the command says so.
    let left = try run("delete", "s01", "--spool", spool.path)
    #expect(left.status == 0 && left.errors.contains("done/s01-0.tar.gz (s01-0), "), "\(left.errors)")
    #expect(left.errors.contains(", and 2 more; if the workers have"), "\(left.errors)")
    #expect(left.errors.contains("if the workers have --session-from, run this again with it"))
    #expect(!left.errors.contains("s02"), "\(left.errors)")
    #expect(try spool.names("incoming").count == 3 && spool.names("done").count == 3)
    let deleted = try run(
      "delete", "s01", "--json", "--spool", spool.path, environment: ["ENCODER_WORKER_SESSION_FROM": Self.pattern])
    #expect(deleted.status == 0 && !deleted.errors.contains("--session-from"), "\(deleted.errors)")
    #expect(try spool.names("incoming") == ["s01-4_2.tar.gz", "s02-3.tar.gz"])
    #expect(try spool.names("done") == [] && spool.names("quarantine") == [])
    struct Line: Decodable { let batches: [String] }
    #expect(
      try deleted.json(as: Line.self).batches.sorted() == [
        "done/s01-0.tar.gz", "done/s01-1.tar.gz", "done/s01-2.tar.gz", "incoming/s01-3.tar.gz",
        "quarantine/s01-9.tar.gz",
      ])
    // Later batches are refused, also one that cannot be read.
    try archive("s01-5.tar.gz", part: 5, in: "spool/incoming")
    try scratch.file("spool/incoming/s01-6.tar.gz", [1, 2, 3])
    let refused = try spool.drain("--session-from", Self.pattern, "--keep-batches", "--log-level", "notice")
    #expect(refused.status == 0, "\(refused.errors)")
    #expect(refused.errors.matches(of: #/ notice batch\.refused batch=s01-[56]\.tar\.gz session=s01 /#).count == 2)
    #expect(try spool.names("done") == ["s01-4_2.tar.gz", "s02-3.tar.gz"] && spool.names("quarantine") == [])
    #expect(try sessions(in: spool.output) == ["s01-4_2", "s02"])
  }

  @Test(arguments: ["run", "encode", "film", "collect", "enqueue", "delete"])
  func patternWithAFaultIsWrongUsage(command: String) throws {
    let places: [String: [String]] = [
      "run": ["--spool", "spool", "--drain"], "encode": ["in", "-o", "out"],
      "film": ["in", "--to", "f.mp4"], "collect": ["in", "--spool", "spool"], "enqueue": ["in", "--spool", "spool"],
      "delete": ["s01", "--spool", "spool"],
    ]
    let words = [command] + (places[command] ?? []) + ["--session-from", "s01-{part}"]
    let result = try Tool.run(EncoderWorker.path, words, in: scratch.url)
    #expect(result.status == 64, "\(result.errors)")
    #expect(
      result.errors.contains("--session-from: 's01-{part}' has no {session}; write {session} once"), "\(result.errors)")
  }
}
