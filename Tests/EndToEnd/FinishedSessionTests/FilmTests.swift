import Foundation
import TestSupport
import Testing

/// `reencode` turns other tools' films into sessions and keeps their pictures and times.
@Suite struct FilmTests {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private func reencode(_ source: String, to output: String = "again", _ options: String...) throws -> Tool.Result {
    try Tool.run(
      EncoderWorker.path, ["reencode", source, "--output", scratch.path(output), "--quality", "small"] + options)
  }

  private static let start: Int64 = 1_767_859_512_340
  private static let instants: [Int64] = [0, 900, 1_000, 3_333, 3_400, 7_001, 7_500, 12_000, 12_040, 13_900]

  /// Numbered pictures at irregular instants, as stock ffmpeg encodes them: limited range, BT.709, B-frames.
  private func film(
    _ name: String, _ options: [String], format: String = "yuv420p", matrix: String = "bt709", range: String = "tv",
    filter: String = "null"
  ) throws -> String {
    var script = "ffconcat version 1.0\n"
    let ends = Self.instants.dropFirst() + [15_000]
    for (number, (from, to)) in zip(Self.instants, ends).enumerated() {
      let file = Fixture("exact-1fps").path + String(format: "/%04d.jpg", number)
      script += "file '\(file)'\noption framerate 1000\nduration \(Double(to - from) / 1_000)\n"
    }
    let list = try scratch.file("list.ffconcat", Array(script.utf8))
    try Tool.output(
      "ffmpeg",
      [
        "-v", "error", "-y", "-f", "concat", "-safe", "0", "-i", list, "-vf",
        "scale=in_range=full:out_range=\(range):out_color_matrix=\(matrix),format=\(format),\(filter)", "-fps_mode",
        "vfr",
        "-enc_time_base", "1:1000", "-video_track_timescale", "90000",
      ] + options + [scratch.path(name)])
    return scratch.path(name)
  }

  private static func tags(_ matrix: String, _ range: String) -> [String] {
    ["-colorspace", matrix, "-color_range", range, "-color_primaries", "bt709", "-color_trc", "bt709"]
  }

  @Test(arguments: [
    ["-c:v", "libx264", "-bf", "3", "-g", "4"], ["-c:v", "libx265", "-x265-params", "log-level=none"],
    ["-c:v", "libx265", "-x265-params", "log-level=none:keyint=4:min-keyint=4:open-gop=1", "-bf", "3"],
    [
      "-c:v", "libx264", "-bf", "3", "-g", "5", "-sc_threshold", "0", "-x264-params",
      "open-gop=1:keyint=5:min-keyint=1",
    ],
  ])
  func filmOfAnotherToolKeepsItsInstants(codec: [String]) throws {
    let film = try film(
      "film.mp4", codec + Self.tags("bt709", "tv") + ["-metadata", "creation_time=2026-01-08T08:05:12Z"])
    let result = try reencode(film)
    try #require(result.status == 0, "\(result.errors)")
    let session = try PublishedSession(scratch.path("again/film"))
    let pictures = try Probe(film).packets(of: 0).map(\.pts).sorted()
    #expect(session.index.startMs == 1_767_859_512_000)
    #expect(session.captured.map { ($0.timeMs - session.index.startMs) * 90 } == pictures.map { $0 - pictures[0] })
    #expect(session.captured.count == Self.instants.count)
    #expect(try EncoderWorker.run("verify", session.path).status == 0)
    try expect(session, looksLike: film)
    let before = try snapshot(of: session.path)
    #expect(try reencode(film, to: "again", "--json").text.contains("\"encoded\":0,"))
    #expect(try snapshot(of: session.path) == before)
  }

  /// Expects each frame's picture to equal the film's; stock ffmpeg decodes both.
  private func expect(_ session: PublishedSession, looksLike film: String) throws {
    let originals = try Pixels.decode(film, width: 180, height: 320)
    for (manifest, decoded) in zip(session.manifests, try session.pictures()) {
      let video = try Probe(session.video(manifest)).packets(of: 0)
      for (frame, offset) in zip(manifest.frames, manifest.offsetsMs) {
        let index = try #require(video.firstIndex { $0.pts == offset * 90 })
        let number = try #require(session.captured.firstIndex { $0.timeMs == frame.timeMs })
        #expect(decoded[index].number == originals[number].number)
        #expect(decoded[index].difference(to: originals[number]) < 3)
      }
    }
  }

  struct Colours: Sendable {
    let format: String
    let matrix: String
    let range: String
    let isTagged: Bool
  }

  /// For each matrix, range and pixel format, tagged or not, the session shows the colours that players show.
  @Test(arguments: [
    Colours(format: "yuv420p", matrix: "bt709", range: "tv", isTagged: true),
    Colours(format: "yuv420p", matrix: "smpte170m", range: "tv", isTagged: true),
    Colours(format: "yuv420p", matrix: "smpte170m", range: "tv", isTagged: false),
    Colours(format: "yuv420p", matrix: "smpte170m", range: "pc", isTagged: true),
    Colours(format: "yuv420p", matrix: "bt709", range: "pc", isTagged: true),
    Colours(format: "yuv444p", matrix: "smpte170m", range: "tv", isTagged: true),
    Colours(format: "yuv422p10le", matrix: "bt709", range: "tv", isTagged: true),
  ])
  func filmKeepsItsColours(colours: Colours) throws {
    let film = try film(
      "film-\(Self.start).mp4",
      colours.isTagged ? Self.tags(colours.matrix, colours.range) : ["-color_range", "unknown"],
      format: colours.format, matrix: colours.matrix == "smpte170m" ? "bt601" : colours.matrix, range: colours.range)
    for side in Extent.of(colours.isTagged ? ["8192"] : ["8192", "200"], full: ["8192", "200"]) {
      let result = try Tool.run(
        EncoderWorker.path,
        ["reencode", film, "--output", scratch.path(side), "--quality", "sharp", "--max-side", side])
      try #require(result.status == 0, "\(result.errors)")
      let session = try PublishedSession(scratch.path("\(side)/film-\(Self.start)"))
      let manifest = session.manifests[0]
      let (width, height) = (manifest.codedWidth, manifest.codedHeight)
      let own = try Pixels.decode(session.video(manifest), width: width, height: height)[0]
      // The colours of the screenshot: a bar of (38, 78, 140), black patches, near white below.
      let bar = own[width - 4, height / 40]
      #expect(zip(bar, [38, 78, 140]).allSatisfy { abs(Int($0) - $1) <= 6 }, "\(colours): \(bar)")
      #expect(own[width / 16, height * 3 / 8].allSatisfy { $0 <= 6 }, "\(colours)")
      #expect(own[width - 3, height - 3].allSatisfy { $0 >= 240 }, "\(colours)")
    }
  }

  /// The left half is black and the right half white, in limited range without chroma. Stock ffmpeg would show grey as full range, so
  /// it is no reference.
  @Test(arguments: [
    ["yuv420p", "libx265", "-x265-params", "log-level=none"],
    ["yuv420p10le", "libx265", "-x265-params", "log-level=none"],
    ["yuv420p", "libaom-av1", "-cpu-used", "8"], ["yuv420p10le", "libaom-av1", "-cpu-used", "8"],
  ])
  func greyFilmKeepsBlackAndWhite(coding: [String]) throws {
    let film = scratch.path("grey-\(Self.start).mp4")
    try Tool.output(
      "ffmpeg",
      [
        "-v", "error", "-f", "lavfi", "-i",
        "color=black:size=64x64:rate=1:duration=2,drawbox=x=32:w=32:h=64:color=white:t=fill,format=\(coding[0]),extractplanes=y",
        "-color_range", "tv", "-c:v",
      ] + coding.dropFirst() + [film])
    let result = try reencode(film)
    try #require(result.status == 0, "\(result.errors)")
    let session = try PublishedSession(scratch.path("again/grey-\(Self.start)"))
    let own = try Pixels.decode(session.video(session.manifests[0]), width: 64, height: 64)[0]
    #expect(own[8, 32].allSatisfy { $0 <= 1 } && own[56, 32].allSatisfy { $0 >= 254 }, "\(own[8, 32]), \(own[56, 32])")
  }

  /// ffmpeg cuts the film without encoding, so the key frame is hidden but needed.
  @Test func filmThatStartsAfterItsKeyFrameIsAccepted() throws {
    let whole = try film("whole.mp4", Self.tags("bt709", "tv") + ["-g", "100", "-bf", "0"])
    let film = scratch.path("cut-\(Self.start).mp4")
    try Tool.output("ffmpeg", ["-v", "error", "-ss", "3.35", "-i", whole, "-c", "copy", film])
    let result = try reencode(film)
    try #require(result.status == 0, "\(result.errors)")
    let session = try PublishedSession(scratch.path("again/cut-\(Self.start)"))
    let decoded = try Pixels.decode(film, width: 180, height: 320)
    #expect(session.captured.count == decoded.count)
    let first = try Pixels.decode(session.video(session.manifests[0]), width: 180, height: 320)[0]
    #expect(first.number == decoded[0].number)
  }

  /// The film has key frames that are not IDR, with and without pictures before them.
  @Test func openGroupsOfPicturesAreDecoded() throws {
    let film = scratch.path("open-\(Self.start).mp4")
    try Tool.output(
      "ffmpeg",
      [
        "-v", "error", "-f", "lavfi", "-i", "testsrc=size=180x320:rate=10:duration=12", "-c:v", "libx264", "-pix_fmt",
        "yuv420p", "-g", "20", "-bf", "3", "-x264-params", "open-gop=1:keyint=20:scenecut=0", film,
      ])
    let result = try reencode(film)
    try #require(result.status == 0, "\(result.errors)")
    let session = try PublishedSession(scratch.path("again/open-\(Self.start)"))
    #expect(session.captured.count == 120)
    #expect(session.index.durationMs == 12_000)
    #expect(try EncoderWorker.run("verify", session.path).status == 0)
  }

  /// Writes a film whose first track is rotated a quarter turn clockwise. ffmpeg's option for this differs between
  /// versions.
  private static func turned(_ film: Data, height: UInt32) throws -> Data {
    var film = film
    let header = try #require(film.firstRange(of: Data("tkhd".utf8)))
    // The matrix of a track header of version 0, ISO/IEC 14496-12, 8.3.2.
    let matrix: [UInt32] = [0, 1 << 16, 0, 0xFFFF_0000, 0, 0, height << 16, 0, 1 << 30]
    let bytes = matrix.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - 8 * $0)) } }
    film.replaceSubrange(header.upperBound + 40..<header.upperBound + 76, with: bytes)
    return film
  }

  @Test func rotatedFilmIsShownUpright() throws {
    let lying = try film("lying.mp4", [])
    let film = scratch.path("turned-\(Self.start).mp4")
    try Self.turned(Data(contentsOf: URL(fileURLWithPath: lying)), height: 320).write(to: URL(fileURLWithPath: film))
    try #require(try reencode(film).status == 0)
    let session = try PublishedSession(scratch.path("again/turned-\(Self.start)"))
    #expect(session.index.startMs == Self.start)
    let manifest = session.manifests[0]
    #expect((manifest.width, manifest.height) == (320, 180))
    // The reference is stock ffmpeg's rotation.
    let wanted = try Pixels.decode(film, width: 320, height: 180)[0]
    #expect(try Pixels.decode(session.video(manifest), width: 320, height: 180)[0].difference(to: wanted) < 3)
  }

  /// A film that `stitch` made of a rotated screen: pictures of two sizes in one track.
  @Test func aFilmOfChangingSizeBecomesSegmentsOfOneSizeEach() throws {
    let session = try EncoderWorker.encode(Fixture("rotation"), into: scratch)
    let film = scratch.path("film.mp4")
    try #require(try EncoderWorker.run("stitch", session.path, "--to", film).status == 0)
    try #require(
      try reencode(film, to: "again", "--start", "\(session.index.startMs)", "--session", "walk").status == 0)
    let again = try PublishedSession(scratch.path("again/walk"))
    #expect(again.manifests.map(\.width) == session.manifests.map(\.width))
    #expect(again.captured.map(\.timeMs) == session.captured.map(\.timeMs))
    #expect(try EncoderWorker.run("verify", again.path).status == 0)
  }

  /// The file stores all video before all audio, so a reader in time order alternates between two positions.
  @Test func filmWithoutInterleavingIsRead() throws {
    let together = scratch.path("together.mp4")
    try Tool.output(
      "ffmpeg",
      [
        "-v", "error", "-f", "lavfi", "-i", "testsrc=size=320x180:rate=25:duration=60", "-f", "lavfi", "-i",
        "sine=duration=60", "-c:v", "libx264", "-preset", "ultrafast", "-g", "50", "-c:a", "aac", together,
      ])
    let film = scratch.path("apart-\(Self.start).mp4")
    let script = Fixture.root.appendingPathComponent("Tests/torture/tracks_apart.py").path
    try Tool.output(Tool.python, [script, together, film])
    let result = try reencode(film)
    try #require(result.status == 0, "\(result.errors)")
    #expect(try PublishedSession(scratch.path("again/apart-\(Self.start)")).captured.count == 1_500)
  }

  @Test(.enabled(if: Extent.isFull)) func filmWithMorePicturesThanASessionHasSegmentsIsRead() throws {
    let film = scratch.path("many-\(Self.start).mp4")
    try Tool.output(
      "ffmpeg",
      [
        "-v", "error", "-f", "lavfi", "-i", "testsrc=size=32x32:rate=100:duration=250", "-c:v", "libx264", "-preset",
        "ultrafast", "-pix_fmt", "yuv420p", film,
      ])
    let result = try reencode(film)
    try #require(result.status == 0, "\(result.errors)")
    #expect(try PublishedSession(scratch.path("again/many-\(Self.start)")).captured.count == 25_000)
  }

  /// The instants come from the timing track. Repeated pictures do not count as captures.
  @Test(arguments: ["exact-1fps", "jittered", "irregular-3fps", "on-change", "rotation", "single-frame"])
  func stitchedFilmKeepsItsInstants(fixture: String) throws {
    let session = try EncoderWorker.encode(Fixture(fixture), into: scratch)
    let film = scratch.path("film.mp4")
    try #require(try EncoderWorker.run("stitch", session.path, "--to", film).status == 0)
    // The value in whole seconds.
    let created = try Tool.output(
      "ffprobe", ["-v", "error", "-show_entries", "format_tags=creation_time", "-of", "default=nw=1:nk=1", film])
    #expect(String(decoding: created, as: UTF8.self) == "2026-01-08T08:05:12.000000Z\n")
    let result = try reencode(film)
    try #require(result.status == 0, "\(result.errors)")
    let again = try PublishedSession(scratch.path("again/film"))
    #expect(again.captured.map(\.timeMs) == session.captured.map(\.timeMs))
    #expect(again.index.startMs == session.index.startMs && again.index.durationMs == session.index.durationMs)
    #expect(try EncoderWorker.run("verify", again.path).status == 0)
  }

  @Test func filmThatCannotBecomeASessionIsRefusedWithAdvice() throws {
    let film = try film("a film.mp4", [])
    let unnamed = try reencode(film)
    #expect(unnamed.status == 65)
    #expect(unnamed.errors.contains("a film.mp4: no name for a session; give --session"))
    let undated = try reencode(film, to: "again", "--session", "walk")
    #expect(undated.errors.contains("it does not say when it was recorded; give --start"))
    #expect(try reencode(film, to: "again", "--session", "walk", "--start", "12").status == 65)
    #expect(try reencode(film, to: "again", "--session", "walk", "--start", "9223372036854775807").status == 65)
    let bright = try self.film("bright-\(Self.start).mp4", [], filter: "setparams=color_trc=smpte2084")
    #expect(try reencode(bright).errors.contains("high dynamic range"))
    let wide = try self.film("wide-\(Self.start).mp4", ["-aspect", "1:1"])
    #expect(try reencode(wide).errors.contains("pixels that are not square"))
    // The file is the cause, not the environment: status 65, not 75.
    let damaged = try self.film("damaged-\(Self.start).mp4", ["-movflags", "+faststart"])
    var bytes = Array(try Data(contentsOf: URL(fileURLWithPath: damaged)))
    for index in stride(from: bytes.count / 2, to: bytes.count, by: 7) { bytes[index] ^= 0x55 }
    try Data(bytes).write(to: URL(fileURLWithPath: damaged))
    let refused = try reencode(damaged)
    #expect(refused.status == 65)
    #expect(refused.errors.contains("damaged-\(Self.start).mp4: "))
    #expect(!FileManager.default.fileExists(atPath: scratch.path("again/walk")))
  }
}
