import FileSystem
import Foundation
import JSON
import TestSupport
import Testing

@testable import Encoding
@testable import Sessions

/// `reencode --quality archive`: fewer, longer segments with the same pictures at the same instants. Systems without SVT-AV1 test H.264.
@Suite struct ArchiveTests {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// The codings of this system.
  private static let codings = ArchiveCoding.Encoders.available.hasAV1 ? ["av1", "h264"] : ["h264"]

  private func archive(
    _ session: PublishedSession, as codec: String, to output: String = "archive", _ options: String...
  ) throws -> PublishedSession {
    let result = try Tool.run(
      EncoderWorker.path,
      [
        "reencode", session.path, "--output", scratch.path(output), "--quality", "archive", "--archive-codec", codec,
      ] + options)
    try #require(result.status == 0, "\(result.errors)")
    #expect(result.errors.contains("archive in \(codec == "av1" ? "AV1" : "H.264")"))
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

  @Test(arguments: codings)
  func batchesBecomeOneSegmentOfTheSamePicturesAndInstants(codec: String) throws {
    let original = try session("s", seconds: 14, batch: 5)
    try #require(original.manifests.count == 3)
    let archive = try archive(original, as: codec)
    try verify(archive)
    let manifest = try #require(archive.manifests.first)
    #expect(archive.manifests.count == 1 && archive.index.bytes < original.index.bytes)
    #expect(manifest.codec.hasPrefix(codec == "av1" ? "av01.0." : "avc1."))
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

  @Test(arguments: codings)
  func secondRunMakesTheSameBytes(codec: String) throws {
    let original = try session("s", seconds: 12, batch: 6)
    let (one, two) = (
      try archive(original, as: codec, to: "one", "--jobs", "1"), try archive(original, as: codec, to: "two")
    )
    #expect(one.manifests.map(\.sha256) == two.manifests.map(\.sha256))
    // Nothing is left to do in the first one's output.
    let again = try archive(original, as: codec, to: "one")
    #expect(again.manifests.map(\.sha256) == one.manifests.map(\.sha256))
  }

  @Test(arguments: codings)
  func filmsClipsAndPicturesAreThoseOfTheSession(codec: String) throws {
    let original = try session("s", seconds: 12, batch: 4)
    let archive = try archive(original, as: codec)
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
    let frame = try EncoderWorker.run("frame", archive.path, "--at", "+7.2s", "--to", scratch.path("frame.png"))
    #expect(frame.status == 0, "\(frame.errors)")
    #expect(try Pixels.decode(scratch.path("frame.png"), width: 320, height: 240)[0].difference(to: wanted[7]) < 6)
  }

  /// `serve` would be busy for minutes with a clip that begins inside an AV1 segment. `stitch` makes it.
  @Test(arguments: codings)
  func serverCodesNoPicturesAgain(codec: String) throws {
    _ = try archive(try session("s", seconds: 10, batch: 5), as: codec)
    let server = try RunningServer(["serve", scratch.path("archive")])
    let film = "/sessions/s/session.mp4"
    let clip = try server.get("\(film)?from=%2B5.5s&to=%2B8s")
    #expect(clip.status == (codec == "av1" ? 422 : 200))
    #expect((clip.text.contains("begin at \(Self.startMs), or run encoder-worker stitch")) == (codec == "av1"))
    // Clips that begin with the segment, or in its first picture, are copied.
    for part in ["", "?to=%2B8s", "?from=%2B0.5s&to=%2B8s"] {
      #expect(try server.get(film + part).status == 200)
    }
  }

  @Test(arguments: codings)
  func playlistNamesTheCodec(codec: String) throws {
    let archive = try archive(try session("s", seconds: 10, batch: 5), as: codec)
    let result = try EncoderWorker.run(
      "stitch", archive.path, "--to", scratch.path("hls"), "--format", "hls")
    try #require(result.status == 0, "\(result.errors)")
    let text = try String(contentsOfFile: scratch.path("hls/multivariant.m3u8"), encoding: .utf8)
    #expect(text.contains("CODECS=\"\(archive.manifests[0].codec)\""))
    #expect(try Probe(scratch.path("hls/session.m3u8")).packets(of: 0).count == archive.manifests[0].samples)
  }

  @Test(arguments: codings, ["rotation", "gap", "irregular-3fps", "on-change", "odd-size"])
  func sizesAndGapsDivideSegments(codec: String, fixture: String) throws {
    let original = try EncoderWorker.encode(Fixture(fixture), into: scratch)
    let archive = try archive(original, as: codec)
    try verify(archive)
    #expect(archive.captured.map(\.timeMs) == original.captured.map(\.timeMs))
    #expect(archive.index.gaps == original.index.gaps && archive.index.durationMs == original.index.durationMs)
    let pairs = zip(original.manifests, original.manifests.dropFirst())
    let divisions = pairs.filter { $0.gapAfterMs > 0 || $0.width != $1.width }.count
    #expect(archive.manifests.count == divisions + 1)
  }

  @Test(arguments: codings)
  func stillIsCodedOnceAndIdleTimeIsCut(codec: String) throws {
    let original = try session("still", seconds: 30, batch: 10, isStill: true)
    let archive = try archive(original, as: codec)
    #expect(2 * archive.index.bytes < original.index.bytes)
    let film = try stitched(archive, to: "film.mp4", "--idle", "cut=500")
    let other = try stitched(original, to: "other.mp4", "--idle", "cut=500")
    let (one, two) = (try Probe(film).packets(of: 0), try Probe(other).packets(of: 0))
    #expect(one.reduce(0) { $0 + $1.duration } == two.reduce(0) { $0 + $1.duration })
  }

  @Test(arguments: codings)
  func overlayIsDrawn(codec: String) throws {
    let original = try session("s", seconds: 8, batch: 4)
    let archive = try archive(original, as: codec, to: "archive", "--overlay", "clock,name")
    try verify(archive)
    let json = try SegmentManifestJSON(archive.path + "/segment-\(Self.startMs).json").members
    #expect(json["encoder"]?.object?["overlay"]?.object?["parts"]?.array?.count == 2)
  }

  @Test func archiveOfAnArchiveAndOfAFilmAreRefused() throws {
    let original = try session("s", seconds: 6, batch: 3)
    let archive = try archive(original, as: "h264")
    let again = try EncoderWorker.run(
      "reencode", archive.path, "--output", scratch.path("twice"), "--quality", "archive")
    #expect(again.status == 65 && again.errors.contains("an archive already"))
    let film = try stitched(original, to: "film.mp4")
    let ofFilm = try EncoderWorker.run("reencode", film, "--output", scratch.path("other"), "--quality", "archive")
    #expect(ofFilm.status == 64 && ofFilm.errors.contains("is for a published session"))
    let codec = try EncoderWorker.run(
      "reencode", original.path, "--output", scratch.path("small"), "--quality", "small", "--archive-codec", "h264")
    #expect(codec.status == 64 && codec.errors.contains("--archive-codec is for --quality archive"))
  }

  /// Segments of two states of a session would be no whole.
  @Test func archiveOfAGrownSessionIsRefused() throws {
    let original = try session("s", seconds: 6, batch: 3)
    _ = try archive(original, as: "h264")
    let folder = try scratch.directory("later")
    try FileManager.default.copyItem(atPath: scratch.path("pictures-s/1.png"), toPath: folder + "/1.png")
    let json = #"{"version":1,"session":"s","frames":[{"file":"1.png","timeMs":\#(Self.startMs + 60_000)}]}"#
    try scratch.file("later/batch.json", Array(json.utf8))
    let grown = try EncoderWorker.run("encode", folder, "--output", scratch.path("output"))
    try #require(grown.status == 0, "\(grown.errors)")
    let again = try EncoderWorker.run(
      "reencode", original.path, "--output", scratch.path("archive"), "--quality", "archive", "--archive-codec", "h264")
    #expect(again.status == 65 && again.errors.contains("published there already"), "\(again.errors)")
  }

  /// An archive, and segments in its place.
  @Test func archiveIsNotMixedWithSegments() throws {
    let original = try session("s", seconds: 6, batch: 3)
    _ = try archive(original, as: "h264")
    let other = try EncoderWorker.run(
      "reencode", original.path, "--output", scratch.path("archive"), "--quality", "small")
    #expect(other.status == 65 && other.errors.contains("published there already"))
  }

  /// The encoder of a system without SVT-AV1, whatever this one has.
  @Test func systemWithoutAV1TellsThatItTakesX264() throws {
    let original = try session("s", seconds: 6, batch: 3)
    var options = Reencoding.Options()
    options.isArchive = true
    options.encoders = ArchiveCoding.Encoders(major: 59, hasAV1: false)
    let work = try Reencoding(
      original.path, options,
      staging: { try Staging(output: scratch.path("x264"), worker: WorkerID()) }, cancellation: .never)
    #expect(work.notice?.contains("H.264 (x264), because this libavcodec has no SVT-AV1: expect") == true)
    for piece in work.pieces { try work.encode(piece: piece, cancellation: .never, made: {}) }
    _ = try work.finish(encoded: work.owed)
    let archive = try PublishedSession(scratch.path("x264/s"))
    #expect(archive.manifests.count == 1 && archive.manifests[0].codec.hasPrefix("avc1."))
  }
}
