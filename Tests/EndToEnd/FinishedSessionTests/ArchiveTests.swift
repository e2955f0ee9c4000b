import Foundation
import JSON
import TestSupport
import Testing

/// `reencode --quality archive`: fewer, longer segments with the same pictures at the same instants.
@Suite struct ArchiveTests {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private func archive(
    _ session: PublishedSession, to output: String = "archive", _ options: String...
  ) throws -> PublishedSession {
    let result = try Tool.run(
      EncoderWorker.path,
      ["reencode", session.path, "--output", scratch.path(output), "--quality", "archive"] + options)
    try #require(result.status == 0, "\(result.errors)")
    return try PublishedSession(scratch.path("\(output)/\(URL(fileURLWithPath: session.path).lastPathComponent)"))
  }

  /// Encodes pictures of 320×240 pixels, one a second, in batches of `batch` each.
  private func session(_ name: String, seconds: Int, batch: Int, isStill: Bool = false) throws -> PublishedSession {
    let pictures = try scratch.directory("pictures-\(name)")
    let source = isStill ? "testsrc2=s=320x240:r=1,loop=-1:1" : "testsrc2=s=320x240:r=1"
    try Tool.output(
      "ffmpeg",
      [
        "-v", "error", "-f", "lavfi", "-i", source, "-frames:v", "\(seconds)", "-start_number", "0",
        pictures + "/%d.png",
      ])
    for start in stride(from: 0, to: seconds, by: batch) {
      let folder = try scratch.directory("\(name)-\(start)")
      let numbers = start..<min(start + batch, seconds)
      for number in numbers {
        try FileManager.default.copyItem(atPath: "\(pictures)/\(number).png", toPath: "\(folder)/\(number).png")
      }
      let list = numbers.map { #"{"file":"\#($0).png","timeMs":\#(Self.startMs + 1_000 * Int64($0))}"# }
      let json = #"{"version":1,"session":"\#(name)","intervalMs":1000,"frames":[\#(list.joined(separator: ","))]}"#
      try scratch.file("\(name)-\(start)/batch.json", Array(json.utf8))
      let result = try EncoderWorker.run("encode", folder, "--output", scratch.path("output"))
      try #require(result.status == 0, "\(result.errors)")
    }
    return try PublishedSession(scratch.path("output/\(name)"))
  }

  private static let startMs: Int64 = 1_767_859_512_340

  private func verify(_ session: PublishedSession) throws {
    let result = try EncoderWorker.run("verify", session.path)
    #expect(result.status == 0, "\(result.text)")
  }

  private func stitched(_ session: PublishedSession, to name: String, _ options: String...) throws -> String {
    let film = scratch.path(name)
    let result = try Tool.run(EncoderWorker.path, ["stitch", session.path, "--to", film] + options)
    try #require(result.status == 0, "\(result.errors)")
    return film
  }

  @Test func batchesBecomeOneSegmentOfTheSamePicturesAndInstants() throws {
    let original = try session("s", seconds: 14, batch: 5)
    try #require(original.manifests.count == 3)
    let archive = try archive(original)
    try verify(archive)
    let manifest = try #require(archive.manifests.first)
    #expect(archive.manifests.count == 1 && archive.index.bytes < original.index.bytes)
    #expect(manifest.codec.hasPrefix("avc1."))
    #expect(archive.captured.map(\.timeMs) == original.captured.map(\.timeMs))
    #expect(archive.captured.map(\.source) == original.captured.map(\.source))
    #expect(
      manifest.frames.map(\.changedBlocks) == original.manifests.flatMap { $0.frames.map(\.changedBlocks) })
    #expect(archive.index.endMs == original.index.endMs && archive.index.gaps == original.index.gaps)
    // Stock tools: one key frame, and each picture at its instant.
    let packets = try Probe(archive.video(manifest)).packets(of: 0)
    #expect(packets.count == manifest.samples && packets.filter(\.isKey).count == 1 && packets[0].isKey)
    let starts = packets.map(\.pts)
    #expect(Set(starts).isSuperset(of: manifest.offsetsMs.map { 90 * $0 }))
    let (before, after) = (try original.pictures().flatMap { $0 }, try archive.pictures()[0])
    #expect(after.count == manifest.samples)
    for (index, offset) in manifest.offsetsMs.enumerated() {
      let place = try #require(starts.firstIndex(of: 90 * offset))
      #expect(after[place].difference(to: before[index]) < 6)
    }
  }

  @Test func secondRunMakesTheSameBytes() throws {
    let original = try session("s", seconds: 12, batch: 6)
    let (one, two) = (
      try archive(original, to: "one", "--jobs", "1"), try archive(original, to: "two")
    )
    #expect(one.manifests.map(\.sha256) == two.manifests.map(\.sha256))
    // Nothing is left to do in the first one's output.
    let again = try archive(original, to: "one")
    #expect(again.manifests.map(\.sha256) == one.manifests.map(\.sha256))
  }

  @Test func filmsClipsAndPicturesAreThoseOfTheSession() throws {
    let original = try session("s", seconds: 12, batch: 4)
    let archive = try archive(original)
    let (one, two) = (try stitched(original, to: "one.mp4"), try stitched(archive, to: "two.mp4"))
    let (times, texts) = (try Probe.timingTexts(one), try Probe.timingTexts(two))
    #expect(texts.map(\.t) == times.filter { $0.continued == nil }.map(\.t))
    #expect(try Probe(one).packets(of: 1).first?.pts == Probe(two).packets(of: 1).first?.pts)
    // From the middle of a hold.
    let clip = try stitched(archive, to: "clip.mp4", "--from", "+5.5s", "--to-time", "+9.5s")
    let packets = try Probe(clip).packets(of: 0)
    #expect(packets.first?.isKey == true && packets.reduce(0) { $0 + $1.duration } == 4_000 * 90)
    let shown = try Pixels.decode(clip, width: 320, height: 240)
    let wanted = try original.pictures().flatMap { $0 }
    #expect(shown.count == packets.count && shown[0].difference(to: wanted[5]) < 6)
    let last = try #require(shown.last)
    #expect(last.difference(to: wanted[9]) < 6)
    for (name, options) in [("fast.mp4", ["--speed", "4"]), ("idle.mp4", ["--idle", "cut"]), ("film.gif", [])] {
      let result = try Tool.run(EncoderWorker.path, ["stitch", archive.path, "--to", scratch.path(name)] + options)
      #expect(result.status == 0, "\(result.errors)")
    }
    let frame = try EncoderWorker.run("pictures", archive.path, "--at", "+7.2s", "--to", scratch.path("frame.png"))
    #expect(frame.status == 0, "\(frame.errors)")
    #expect(try Pixels.decode(scratch.path("frame.png"), width: 320, height: 240)[0].difference(to: wanted[7]) < 6)
  }

  @Test func serverMakesFilmsAndClips() throws {
    _ = try archive(try session("s", seconds: 10, batch: 5))
    let server = try RunningServer(["serve", scratch.path("archive")])
    let film = "/sessions/s/session.mp4"
    for part in ["", "?to=%2B8s", "?from=%2B0.5s&to=%2B8s", "?from=%2B5.5s&to=%2B8s"] {
      #expect(try server.get(film + part).status == 200)
    }
  }

  @Test func playlistNamesTheCodec() throws {
    let archive = try archive(try session("s", seconds: 10, batch: 5))
    let result = try EncoderWorker.run(
      "stitch", archive.path, "--to", scratch.path("hls"), "--format", "hls")
    try #require(result.status == 0, "\(result.errors)")
    let text = try String(contentsOfFile: scratch.path("hls/multivariant.m3u8"), encoding: .utf8)
    #expect(text.contains("CODECS=\"\(archive.manifests[0].codec)\""))
    #expect(try Probe(scratch.path("hls/session.m3u8")).packets(of: 0).count == archive.manifests[0].samples)
  }

  @Test(arguments: ["rotation", "gap", "irregular-3fps", "on-change", "odd-size"])
  func sizesAndGapsDivideSegments(fixture: String) throws {
    let original = try EncoderWorker.encode(Fixture(fixture), into: scratch)
    let archive = try archive(original)
    try verify(archive)
    #expect(archive.captured.map(\.timeMs) == original.captured.map(\.timeMs))
    #expect(archive.index.gaps == original.index.gaps && archive.index.durationMs == original.index.durationMs)
    let pairs = zip(original.manifests, original.manifests.dropFirst())
    let divisions = pairs.filter { $0.gapAfterMs > 0 || $0.width != $1.width }.count
    #expect(archive.manifests.count == divisions + 1)
  }

  @Test func stillIsCodedOnceAndIdleTimeIsCut() throws {
    let original = try session("still", seconds: 30, batch: 10, isStill: true)
    let archive = try archive(original)
    #expect(2 * archive.index.bytes < original.index.bytes)
    let film = try stitched(archive, to: "film.mp4", "--idle", "cut=500")
    let other = try stitched(original, to: "other.mp4", "--idle", "cut=500")
    let (one, two) = (try Probe(film).packets(of: 0), try Probe(other).packets(of: 0))
    #expect(one.reduce(0) { $0 + $1.duration } == two.reduce(0) { $0 + $1.duration })
  }

  @Test func overlayIsDrawn() throws {
    let original = try session("s", seconds: 8, batch: 4)
    let archive = try archive(original, to: "archive", "--overlay", "clock,name")
    try verify(archive)
    let json = try SegmentManifestJSON(archive.path + "/segment-\(Self.startMs).json").members
    #expect(json["encoder"]?.object?["overlay"]?.object?["parts"]?.array?.count == 2)
  }

  @Test func archiveOfAnArchiveAndOfAFilmAreRefused() throws {
    let original = try session("s", seconds: 6, batch: 3)
    let archive = try archive(original)
    let again = try EncoderWorker.run(
      "reencode", archive.path, "--output", scratch.path("twice"), "--quality", "archive")
    #expect(again.status == 65 && again.errors.contains("an archive already"))
    let film = try stitched(original, to: "film.mp4")
    let ofFilm = try EncoderWorker.run("reencode", film, "--output", scratch.path("other"), "--quality", "archive")
    #expect(ofFilm.status == 64 && ofFilm.errors.contains("is for a published session"))
  }

  /// Segments of two states of a session would be no whole.
  @Test func archiveOfAGrownSessionIsRefused() throws {
    let original = try session("s", seconds: 6, batch: 3)
    _ = try archive(original)
    let folder = try scratch.directory("later")
    try FileManager.default.copyItem(atPath: scratch.path("pictures-s/1.png"), toPath: folder + "/1.png")
    let json = #"{"version":1,"session":"s","frames":[{"file":"1.png","timeMs":\#(Self.startMs + 60_000)}]}"#
    try scratch.file("later/batch.json", Array(json.utf8))
    let grown = try EncoderWorker.run("encode", folder, "--output", scratch.path("output"))
    try #require(grown.status == 0, "\(grown.errors)")
    let again = try EncoderWorker.run(
      "reencode", original.path, "--output", scratch.path("archive"), "--quality", "archive")
    #expect(again.status == 65 && again.errors.contains("published there already"), "\(again.errors)")
  }

  /// An archive, and segments in its place.
  @Test func archiveIsNotMixedWithSegments() throws {
    let original = try session("s", seconds: 6, batch: 3)
    _ = try archive(original)
    let other = try EncoderWorker.run(
      "reencode", original.path, "--output", scratch.path("archive"), "--quality", "small")
    #expect(other.status == 65 && other.errors.contains("published there already"))
  }

  /// The command for AV1 that the page names.
  private func conversion() throws -> [String] {
    let page = try String(contentsOf: Fixture.root.appendingPathComponent("docs/output.md"), encoding: .utf8)
    let lines = page.split(separator: "\n").filter { $0.hasPrefix("ffmpeg ") && $0.contains("-c:v libsvtav1") }
    try #require(lines.count == 1)
    return lines[0].split(separator: " ").dropFirst().map(String.init)
  }

  private static let hasAV1 = ConditionTrait.enabled("ffmpeg has no SVT-AV1") {
    String(decoding: try Tool.output("ffmpeg", ["-hide_banner", "-encoders"]), as: UTF8.self).contains("libsvtav1")
  }

  @Test(hasAV1, arguments: ["gap", "irregular-3fps", "on-change", "jittered"])
  func filmBecomesAV1AsThePageSays(fixture: String) throws {
    let session = try EncoderWorker.encode(Fixture(fixture), into: scratch)
    let film = try stitched(session, to: "session.mp4")
    try Tool.output("ffmpeg", ["-v", "error"] + conversion(), in: scratch.url)
    let made = scratch.path("session-av1.mp4")
    let (one, two) = (try Probe(film), try Probe(made))
    #expect(two.streams.first?.codecName == "av1")
    #expect(two.packets(of: 0).map(\.pts) == one.packets(of: 0).map(\.pts))
    #expect(two.packets(of: 1).map(\.pts) == one.packets(of: 1).map(\.pts))
    #expect(try Probe.timingTexts(made).map(\.t) == Probe.timingTexts(film).map(\.t))
    // The program reads it.
    let again = try EncoderWorker.run(
      "reencode", made, "--session", "again", "--output", scratch.path("again"), "--quality", "balanced")
    #expect(again.status == 0, "\(again.errors)")
    let captured = try PublishedSession(scratch.path("again/again")).captured.map(\.timeMs)
    #expect(Set(captured).isSuperset(of: session.captured.map(\.timeMs)))
  }
}
