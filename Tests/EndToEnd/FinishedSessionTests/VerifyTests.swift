import Foundation
import JSON
import TestSupport
import Testing

/// `verify` finds each kind of damage to a published session.
@Suite struct VerifyTests {
  let scratch: ScratchDirectory
  private let session: PublishedSession

  init() throws {
    scratch = try ScratchDirectory()
    session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
  }

  private func file(_ name: String) -> URL { URL(fileURLWithPath: session.path + "/" + name) }

  private func edit(_ name: String, _ change: (inout Data) -> Void) throws {
    var bytes = try Data(contentsOf: file(name))
    change(&bytes)
    try bytes.write(to: file(name))
  }

  private func replace(_ old: String, by new: String, in name: String) throws {
    let text = try String(contentsOf: file(name), encoding: .utf8)
    #expect(text.contains(old))
    try text.replacingOccurrences(of: old, with: new).write(to: file(name), atomically: false, encoding: .utf8)
  }

  /// The output of `verify --json`.
  private struct Report: Decodable {
    struct Problem: Decodable { let file, problem: String }

    let ok: Bool
    let problems: [Problem]
  }

  /// The problems found, as `file: problem`.
  private func problems(_ options: String...) throws -> [String] {
    let result = try Tool.run(EncoderWorker.path, ["verify", session.path, "--json"] + options)
    let report = try result.json(as: Report.self)
    #expect(result.status == (report.problems.isEmpty ? 0 : 65))
    #expect(report.ok == report.problems.isEmpty)
    return report.problems.map { "\($0.file): \($0.problem)" }
  }

  @Test(arguments: Fixture.sample + Fixture.corpus)
  func publishedSessionIsIntact(fixture: Fixture) throws {
    let own = try ScratchDirectory()
    let session = try EncoderWorker.encode(fixture, into: own)
    let result = try EncoderWorker.run("verify", session.path)
    #expect(result.status == 0, "\(result.text)")
    let rows = result.text.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
    try #require(rows.count == 2 && rows[1].count > 4)
    #expect(rows[0] == ["segments", "frames", "duration", "session"])
    #expect(rows[1].prefix(3) == ["ok", "\(session.manifests.count)", "\(session.index.frames)"])
    let ms = session.index.durationMs
    if (1_000..<60_000).contains(ms) { #expect(rows[1][3...4] == ["\(ms / 1_000).\(ms % 1_000 / 100)", "s"]) }
    #expect(rows[1].last == fixture.name)
  }

  @Test func aFlippedByteIsFound() throws {
    let size = session.manifests[1].bytes
    for position in [0, 40, size / 2, size - 1] {
      try edit("segment-1767859517340.mp4") { $0[position] ^= 1 }
      #expect(try problems() == ["segment-1767859517340.mp4: not the file its manifest describes: other bytes"])
      try edit("segment-1767859517340.mp4") { $0[position] ^= 1 }
    }
    #expect(try problems().isEmpty)
  }

  @Test func aTruncatedFileIsFound() throws {
    try edit("segment-1767859512340.mp4") { $0 = $0.dropLast(10) }
    #expect(try problems().first?.contains("bytes instead of") == true)
  }

  @Test func aMissingSegmentIsFound() throws {
    try FileManager.default.removeItem(at: file("segment-1767859517340.mp4"))
    #expect(try problems() == ["segment-1767859517340.mp4: missing"])
    try FileManager.default.removeItem(at: file("segment-1767859517340.json"))
    let found = try problems()
    #expect(found.contains { $0.hasSuffix("part 2 of 3 is missing") })
    #expect(found.contains { $0.hasPrefix("session.json: not what") })
  }

  @Test(arguments: [
    ("\"holdMs\":1000", "\"holdMs\":1001"), ("\"version\":\"1.2.3\"", "\"version\":\"1.2.4\""),
    ("0003.jpg", "0033.jpg"),
    ("\"gapAfterMs\":0", "\"gapAfterMs\":1"), ("\"part\":1", "\"part\":2"), ("\"width\":180", "\"width\":182"),
    ("\"timeMs\":1767859513340", "\"timeMs\":1767859513341"), ("\"final\":false", "\"final\":true"),
    ("\"session\":\"exact-1fps\"", "\"session\":\"other\""), ("\"parts\":3", "\"parts\":9223372036854775807"),
    ("\"holdMs\":1000", "\"holdMs\":9223372036854775807"), ("\"gapAfterMs\":0", "\"gapAfterMs\":9223372036854775807"),
    ("\"endMs\":1767859517340", "\"endMs\":9223372036854775807"), ("\"startMs\":1767859512340", "\"startMs\":-1"),
    ("avc1.4D400B", "avc1.64001F"), ("{\"batch\"", "{\"batch"),
  ])
  func anEditedManifestIsFound(old: String, new: String) throws {
    try replace(old, by: new, in: "segment-1767859512340.json")
    #expect(try problems().contains { $0.hasPrefix("segment-1767859512340.json: ") })
  }

  @Test func swappedFilesAreFound() throws {
    let (one, two) = (file("segment-1767859512340.mp4"), file("segment-1767859517340.mp4"))
    let bytes = (try Data(contentsOf: one), try Data(contentsOf: two))
    try bytes.1.write(to: one)
    try bytes.0.write(to: two)
    #expect(try problems().count == 2)
    // The test swaps the manifests too, so the names contradict the manifests' contents.
    let manifests = (file("segment-1767859512340.json"), file("segment-1767859517340.json"))
    let texts = (try Data(contentsOf: manifests.0), try Data(contentsOf: manifests.1))
    try texts.1.write(to: manifests.0)
    try texts.0.write(to: manifests.1)
    #expect(try problems().filter { $0.contains("another segment") }.count == 2)
  }

  /// The manifest and its digest are consistent, but the manifest contradicts the file.
  @Test func wrongDurationWithAValidDigestIsFound() throws {
    let name = "segment-1767859522340.json"
    try replace("\"durationMs\":2000", by: "\"durationMs\":2500", in: name)
    try replace("\"endMs\":1767859524340", by: "\"endMs\":1767859524840", in: name)
    try replace("\"holdMs\":1000,\"source\":\"0011.jpg\"", by: "\"holdMs\":1500,\"source\":\"0011.jpg\"", in: name)
    try seal(name)
    let found = try problems()
    #expect(found.contains("segment-1767859522340.mp4: another duration than its manifest says"))
    #expect(found.contains("segment-1767859522340.mp4: the video lasts 180000 ticks instead of 225000"))
  }

  /// A second batch that was moved by hand over the first one's time.
  @Test func anOverlapIsFound() throws {
    let other = try ScratchDirectory()
    _ = try other.directory("late")
    for (index, name) in ["0001.jpg", "0002.jpg"].enumerated() {
      try other.file("late/\(1_767_859_514_000 + index * 1_000).jpg", try Fixture("exact-1fps").bytes(name))
    }
    let result = try EncoderWorker.run(
      "encode", other.path("late"), "--session", "exact-1fps", "--output", other.path("output"))
    #expect(result.status == 0)
    for suffix in ["mp4", "json"] {
      let name = "segment-1767859514000.\(suffix)"
      try FileManager.default.copyItem(
        atPath: other.path("output/exact-1fps/" + name), toPath: session.path + "/" + name)
    }
    #expect(try problems().contains("segment-1767859514000.mp4: overlaps segment-1767859512340.mp4"))
  }

  @Test func anOrphanIsFound() throws {
    for name in ["segment-1767859599999.mp4", "notes.txt"] {
      try Data([1]).write(to: file(name))
      #expect(try problems() == ["\(name): an orphan: no manifest knows it"])
      try FileManager.default.removeItem(at: file(name))
    }
  }

  @Test func damagedSessionFilesAreRebuiltIfAllSegmentsAreIntact() throws {
    let before = try snapshot(of: session.path).mapValues(\.bytes)
    try edit("session.json") { $0 = Data("{}".utf8) }
    try FileManager.default.removeItem(at: file("session.ffconcat"))
    #expect(try problems().count == 2)
    #expect(try problems("--repair").isEmpty)
    #expect(try snapshot(of: session.path).mapValues(\.bytes) == before)
    // `--repair` does not rebuild them while a segment is damaged.
    try edit("session.json") { $0 = Data("{}".utf8) }
    try edit("segment-1767859512340.mp4") { $0[100] ^= 1 }
    #expect(try problems("--repair").count == 2)
  }

  @Test func eventsForSentryAreCheckedAndRebuilt() throws {
    _ = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch, "--sentry")
    let events = session.manifests.map { "segment-\($0.startMs).sentry.json" }
    let whole = try snapshot(of: session.path).mapValues(\.bytes)
    #expect(Set(whole.keys).isSuperset(of: events))
    #expect(try problems().isEmpty)
    try replace("\"segmentId\":0", by: "\"segmentId\":1", in: events[0])
    try FileManager.default.removeItem(at: file(events[1]))
    let advice = "--repair rebuilds it when all segments are right"
    #expect(
      try problems() == [
        "\(events[0]): not what the segments' manifests say; \(advice)", "\(events[1]): missing; \(advice)",
      ])
    #expect(try problems("--repair").isEmpty)
    #expect(try snapshot(of: session.path).mapValues(\.bytes) == whole)
  }

  /// The event can be the trace of a lost segment, so `--repair` keeps it. Its presence does not require events for the
  /// other segments.
  @Test func anEventWithoutItsSegmentIsAnOrphan() throws {
    let name = "segment-1767859599999.sentry.json"
    try Data("{}".utf8).write(to: file(name))
    for options in [[], ["--repair"]] {
      let result = try Tool.run(EncoderWorker.path, ["verify", session.path] + options)
      #expect(result.status == 65)
      #expect(result.text.hasSuffix("\n  \(name): an orphan: no manifest knows it\n"))
      #expect(result.text.contains("\n1 wrong "))
    }
    // `--repair` makes no events, since the session was encoded without `--sentry`.
    try FileManager.default.removeItem(at: file(name))
    #expect(try problems("--repair").isEmpty)
    #expect(try names(in: session.path).allSatisfy { !$0.hasSuffix(".sentry.json") })
  }

  @Test func pathWithoutASessionIsReported() throws {
    let result = try EncoderWorker.run("verify", scratch.path("nowhere"), session.path)
    #expect(result.status == 65)
    #expect(result.text.contains("nowhere: not a session's directory"))
    let json = try EncoderWorker.run("verify", "--json", scratch.path("nowhere"))
    #expect(json.status == 65)
    #expect(json.text.contains(#""ok":false"#) && json.text.contains("not a session's directory"))
    #expect(result.text.contains(#/\nok .* exact-1fps\n/#))
  }

  /// If a segment and its manifest are lost, session.json still lists it; `--repair` keeps that entry.
  @Test func lostSegmentListedInSessionJSONIsFound() throws {
    let spool = try TestSpool()
    try spool.addSmall("walk@1", startMs: 1_767_859_512_340)
    try spool.addSmall("walk@2", startMs: 1_767_859_514_340)
    #expect(try spool.drain().status == 0)
    let walk = spool.output + "/walk"
    for suffix in ["mp4", "json"] {
      try FileManager.default.removeItem(atPath: walk + "/segment-1767859514340.\(suffix)")
    }
    for options in [[], ["--repair"]] {
      let result = try Tool.run(EncoderWorker.path, ["verify", walk] + options)
      #expect(result.status == 65)
      #expect(result.text.contains("segment-1767859514340.mp4: listed in session.json, but it has no manifest"))
    }
  }

  @Test func renamedSessionIsReportedAsOneProblem() throws {
    let renamed = scratch.path("output/other")
    try FileManager.default.moveItem(atPath: session.path, toPath: renamed)
    let result = try EncoderWorker.run("verify", renamed)
    #expect(result.status == 65)
    #expect(result.text.contains("called other, but its manifests say: exact-1fps"))
    #expect(try EncoderWorker.run("stitch", renamed, "--to", scratch.path("film.mp4")).status == 65)
  }

  /// The manifest has numbers out of range and a valid digest, as an attacker could write it. `verify` refuses
  /// it; the other commands do not crash.
  @Test(arguments: [
    ("codedWidth", 65_536), ("codedHeight", 1 << 33), ("width", 0), ("samples", 0), ("endMs", 1 << 42),
    ("parts", 1 << 20),
    ("gapAfterMs", 1 << 42), ("bytes", 1 << 42),
  ])
  func numbersOutOfRangeAreRefusedDespiteAValidDigest(key: String, value: Int) throws {
    let name = session.path + "/segment-1767859512340.json"
    var manifest = try SegmentManifestJSON(name)
    manifest[key] = .number(value)
    try manifest.write(to: name)
    let result = try EncoderWorker.run("verify", session.path)
    #expect(result.status == 65)
    #expect(result.text.utf8.count < 4_000)
    for format in ["mp4", "hls"] {
      let status = try EncoderWorker.run("stitch", session.path, "--to", scratch.path(format), "--format", format)
        .status
      #expect([0, 65].contains(status))
    }
    #expect(
      [0, 65].contains(
        try EncoderWorker.run("reencode", session.path, "-o", scratch.path("again"), "-q", "small").status))
  }

  /// The times are consistent with each other, but exceed the range of the file format.
  @Test(arguments: [23_860_930, 47_721_859, 1 << 40])
  func holdBeyondTheRangeOfMP4IsRefusedByAllReaders(holdMs: Int) throws {
    let name = session.path + "/segment-1767859522340.json"
    var manifest = try SegmentManifestJSON(name)
    let frames = try manifest.frames
    let last = try #require(frames.last)
    let addedMs = try Int64(holdMs) - last.required("holdMs", .integer)
    manifest["frames"] = .array(frames.dropLast() + [last.setting(["holdMs": .number(holdMs)])])
    for key in ["endMs", "durationMs"] { manifest[key] = .number(try #require(manifest[key]?.integer) + addedMs) }
    try manifest.write(to: name)
    for command in [
      ["verify"], ["stitch", "--to", scratch.path("film.mp4")],
      ["stitch", "--to", scratch.path("hls"), "--format", "hls"],
      ["reencode", "-o", scratch.path("again"), "-q", "small"],
      ["pictures", "--sheet", "--to", scratch.path("sheet.jpg")],
    ] {
      let result = try Tool.run(EncoderWorker.path, [command[0], session.path] + command.dropFirst())
      #expect(result.status == 65, "\(command[0]): \(result.status)")
      #expect((result.text + result.errors).contains("holdMs: out of range"), "\(command[0]): \(result.errors)")
    }
  }

  /// Gives an edited manifest a valid digest, as an attacker could.
  private func seal(_ name: String) throws {
    let text = try String(contentsOf: file(name), encoding: .utf8).trimmingCharacters(in: .newlines)
    let digest = try #require(text.range(of: #""manifestSha256":"[0-9a-f]{64}","#, options: .regularExpression))
    let bare = text.replacingCharacters(in: digest, with: "")
    try Data(bare.utf8).write(to: URL(fileURLWithPath: scratch.path("bare")))
    let sum = String(decoding: try Tool.output("sha256sum", [scratch.path("bare")]).prefix(64), as: UTF8.self)
    try text.replacingCharacters(in: digest, with: "\"manifestSha256\":\"\(sum)\",")
      .write(to: file(name), atomically: false, encoding: .utf8)
  }
}
