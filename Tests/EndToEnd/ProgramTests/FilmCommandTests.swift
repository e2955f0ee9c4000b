import Foundation
import TestSupport
import Testing

/// `film` makes one film of pictures, and nothing else.
@Suite struct FilmCommandTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private func film(_ words: String..., to file: String = "film.mp4") throws -> Tool.Result {
    try Tool.run(
      EncoderWorker.path, ["film"] + words + ["--to", scratch.path(file)], in: scratch.url,
      environment: ["TMPDIR": scratch.path("tmp")])
  }

  private func bytes(_ name: String) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: scratch.path(name))) }

  /// Copies the pictures of a fixture under other names.
  private func pictures(_ names: [String], in folder: String) throws {
    _ = try scratch.directory(folder)
    for (number, name) in names.enumerated() {
      try scratch.file("\(folder)/\(name)", Fixture("exact-1fps").bytes(String(format: "%04d.jpg", number)))
    }
  }

  @Test(arguments: ["jittered", "gap", "on-change", "masks"]) func filmIsThatOfEncodeAndStitch(fixture: String) throws {
    _ = try scratch.directory("tmp")
    let result = try film(Fixture(fixture).path, "--segment", "5")
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.text.contains(scratch.path("film.mp4")) && result.text.contains(".0 s, "), "\(result.text)")
    let encoded = try Tool.run(EncoderWorker.path, ["encode", Fixture(fixture).path, "-o", scratch.path("out")])
    let session = try #require(try names(in: scratch.path("out")).first { !$0.hasPrefix(".") })
    let stitched = try Tool.run(
      EncoderWorker.path, ["stitch", scratch.path("out/" + session), "--to", scratch.path("stitched.mp4")])
    #expect(encoded.status == 0 && stitched.status == 0, "\(stitched.errors)")
    #expect(try bytes("film.mp4") == bytes("stitched.mp4"))
    #expect(try Set(names(in: scratch.path)) == ["film.mp4", "out", "stitched.mp4", "tmp"])
    #expect(try names(in: scratch.path("tmp")) == [])
  }

  @Test func numberedPicturesNeedOnlyARate() throws {
    _ = try scratch.directory("tmp")
    try pictures((1...6).map { String(format: "frame_%04d.jpg", $0) }, in: "frames")
    let result = try film("frames", "--fps", "2")
    #expect(result.status == 0 && result.text.contains(" 3.0 s"), "\(result.text)\(result.errors)")
    let fast = try film("frames", "--fps", "2", "--speed", "3")
    #expect(fast.status == 0 && fast.text.contains(" 1.0 s"), "\(fast.text)\(fast.errors)")
    let part = try film("frames", "--fps", "2", "--from", "+1s", "--to-time", "+2s")
    #expect(part.status == 0 && part.text.contains(" 1.0 s"), "\(part.text)\(part.errors)")
  }

  @Test func severalInputsAreOneFilm() throws {
    _ = try scratch.directory("tmp")
    try pictures(["1767859512000.jpg", "1767859513000.jpg"], in: "one")
    try pictures(["1767859514000.jpg", "1767859515000.jpg"], in: "two")
    let result = try film("two", "one")
    #expect(result.status == 0 && result.text.contains(" 4.0 s"), "\(result.text)\(result.errors)")
    try pictures(["1767859513500.jpg", "1767859515500.jpg"], in: "three")
    let overlapping = try film("two", "one", "three", to: "other.mp4")
    #expect(overlapping.status == 65 && overlapping.errors.contains("other pictures than"), "\(overlapping.errors)")
    #expect(try !names(in: scratch.path).contains("other.mp4"))
  }

  /// An MP4 with B-frames, and a QuickTime file.
  @Test(arguments: ["mp4", "mov"]) func recordingIsAFilmAtItsOwnTimes(suffix: String) throws {
    _ = try scratch.directory("tmp")
    let recording = scratch.path("recording." + suffix)
    try Tool.output(
      "ffmpeg",
      ["-v", "error", "-f", "lavfi", "-i", "testsrc=size=64x48:rate=10:duration=3", "-c:v", "libx264", "-bf", "2"]
        + ["-pix_fmt", "yuv420p", recording])
    let result = try film(recording, "--json")
    #expect(result.status == 0 && result.text.contains(#""durationMs":3000"#), "\(result.text)\(result.errors)")
    #expect(result.text.contains(#""clock":"unknown""#), "\(result.text)")
    let fast = try film(recording, "--speed", "3", "--start", "2026-01-08T08:05:12Z", to: "fast.gif")
    #expect(fast.status == 0 && fast.text.contains(" 1.0 s, 30 pictures"), "\(fast.text)\(fast.errors)")
    #expect(try film(recording, "--fps", "3").status == 64)
    #expect(try Set(names(in: scratch.path)) == ["tmp", "recording." + suffix, "film.mp4", "fast.gif"])
  }

  @Test func recordingOfAnotherCodingIsRefusedWithTheCommandThatConvertsIt() throws {
    _ = try scratch.directory("tmp")
    let source = ["-v", "error", "-f", "lavfi", "-i", "testsrc=size=64x48:rate=10:duration=1"]
    try Tool.output("ffmpeg", source + ["-c:v", "mpeg4", scratch.path("old.mp4")])
    let refused = try film("old.mp4")
    #expect(refused.status == 65, "\(refused.errors)")
    let command = try #require(refused.errors.split(separator: ": ").last { $0.hasPrefix("ffmpeg ") })
    try Tool.output("bash", ["-c", command.split(separator: "\n")[0] + " -loglevel error"], in: scratch.url)
    #expect(try film("old-h264.mp4").status == 0)
    let own = try film("old-h264.mp4", to: "old-h264.mp4")
    #expect(own.status == 64 && own.errors.contains("the recording itself"), "\(own.errors)")
  }

  @Test func inputThatCannotBeUsedMakesNoFilm() throws {
    _ = try scratch.directory("tmp")
    _ = try scratch.directory("data/2026-01-08")
    for name in ["1767859512340_m1.jpg", "1767859513340_m2.jpg"] {
      try scratch.file("data/2026-01-08/" + name, Fixture("exact-1fps").bytes("0000.jpg"))
    }
    let screens = try film("data")
    #expect(screens.status == 65 && screens.errors.contains("it has 2 sessions: film.m1, film.m2"), "\(screens.errors)")
    let missing = try film("nowhere")
    #expect(missing.status == 65 && missing.errors.contains("nowhere"), "\(missing.errors)")
    for ending in ["gif", "webp", "png"] { #expect(try film("nowhere", to: "film.\(ending)").status == 65) }
    #expect(try film("data", to: "film.mkv").status == 64)
    #expect(try Set(names(in: scratch.path)) == ["data", "tmp"])
  }

  @Test(arguments: ["gif", "webp", "png", "jpg"]) func otherFormsAreThoseOfEncodeAndStitch(ending: String) throws {
    _ = try scratch.directory("tmp")
    let session = try EncoderWorker.encode(Fixture("jittered"), into: scratch)
    for (options, name) in [([], "whole"), (["--from", "+2.5s", "--max-side", "100", "--speed", "2"], "part")] {
      let (own, other) = (scratch.path("\(name)-film.\(ending)"), scratch.path("\(name)-stitched.\(ending)"))
      let made = try Tool.run(
        EncoderWorker.path, ["film", Fixture("jittered").path, "--segment", "5", "--to", own] + options,
        environment: ["TMPDIR": scratch.path("tmp")])
      #expect(made.status == 0 && made.text.hasPrefix("\(own): "), "\(made.errors)")
      #expect(try Tool.run(EncoderWorker.path, ["stitch", session.path, "--to", other] + options).status == 0)
      #expect(FileManager.default.contentsEqual(atPath: own, andPath: other), "\(name)")
    }
    #expect(try names(in: scratch.path("tmp")) == [])
  }

  /// The pictures are scaled before they are encoded; sides are even.
  @Test func picturesOfAnMP4AreScaledToTheMaximum() throws {
    _ = try scratch.directory("tmp")
    for fixture in ["exact-1fps", "rotation", "odd-size", "masks"] {
      let result = try film(Fixture(fixture).path, "--max-side", "96")
      #expect(result.status == 0, "\(result.errors)")
      let stream = try Probe(scratch.path("film.mp4")).streams[0]
      #expect([stream.width, stream.height] == [54, 96], "\(fixture)")
    }
    let small = try film(Fixture("exact-1fps").path, "--max-side", "96")
    let shown = try Pixels.decode(scratch.path("film.mp4"), width: 54, height: 96)
    #expect(small.status == 0 && Set(shown.map(\.number)) == Set(0..<12))
    // Larger than the pictures.
    #expect(try film(Fixture("exact-1fps").path, "--max-side", "321", to: "large.mp4").status == 0)
    #expect(try film(Fixture("exact-1fps").path, to: "plain.mp4").status == 0)
    #expect(try bytes("large.mp4") == bytes("plain.mp4"))
    for side in ["0", "15", "8193"] { #expect(try film("frames", "--max-side", side).status == 64) }
  }

  private struct Facts: Decodable {
    let clock: String?
    let fromMs, toMs: Int64
  }

  /// The film's `creation_time`; empty if it has none.
  private func created() throws -> String {
    String(
      decoding: try Tool.output(
        "ffprobe",
        ["-v", "error", "-show_entries", "format_tags=creation_time", "-of", "csv=p=0", scratch.path("film.mp4")]),
      as: UTF8.self
    ).trimmingCharacters(in: .whitespacesAndNewlines)
  }

  /// Without a clock, no date of the first capture that the program can count from is told as true.
  @Test func numberedPicturesHaveNoDates() throws {
    _ = try scratch.directory("tmp")
    try pictures((1...6).map { String(format: "frame_%04d.jpg", $0) }, in: "frames")
    let plain = try film("frames", "--fps", "2", "--json").json(as: Facts.self)
    #expect(plain.clock == "unknown" && plain.fromMs == 0 && plain.toMs == 3_000)
    #expect(try created() == "")
    let texts = try Probe.timingTexts(scratch.path("film.mp4"))
    #expect(texts.map(\.t) == [0, 500, 1_000, 1_500, 2_000, 2_500])
    #expect(texts.map(\.f) == (1...6).map { String(format: "frame_%04d.jpg", $0) })
    let part = try film("frames", "--fps", "2", "--from", "+1.2s", "--json").json(as: Facts.self)
    #expect(part.clock == "unknown" && part.fromMs == 1_200 && part.toMs == 3_000)
    #expect(try Probe.timingTexts(scratch.path("film.mp4")).map(\.t) == [1_000, 1_500, 2_000, 2_500])
    let dated = try film("frames", "--fps", "2", "--start", "1767859512000", "--json").json(as: Facts.self)
    #expect(dated.clock == nil && dated.fromMs == 1_767_859_512_000)
    #expect(try created().hasPrefix("2026-01-08T08:05:12"))
    let refused = try film("frames", "--fps", "2", "--from", "1767859512000")
    #expect(refused.status == 64 && refused.errors.contains("+12.5s"), "\(refused.errors)")
    let short = try film("frames", "--fps", "2", "--to-time", "+10s")
    #expect(short.status == 0 && short.errors.contains("the session ends at +3.000s"), "\(short.errors)")
    let outside = try film("frames", "--fps", "2", "--from", "+5s", "--to-time", "+6s")
    #expect(outside.status != 0 && outside.errors.contains("from +5.000s to +6.000s"), "\(outside.errors)")
    #expect(!outside.errors.contains("2001"))
  }

  /// A recorder that was killed may leave a broken first picture. Times still count from its place.
  @Test(arguments: [false, true]) func brokenFirstPictureGivesNoDates(isDescribed: Bool) throws {
    _ = try scratch.directory("tmp")
    try pictures((1...6).map { String(format: "frame_%04d.jpg", $0) }, in: "frames")
    try scratch.file("frames/frame_0001.jpg", Array(Fixture("exact-1fps").bytes("0000.jpg").prefix(200)))
    // Its files have no times but their numbers.
    if isDescribed { try scratch.file("frames/batch.json", Array(#"{"version": 1, "session": "walk"}"#.utf8)) }
    let result = try film("frames", "--fps", "2", "--json")
    #expect(result.status == 0 && result.errors.contains("refused frame_0001.jpg"), "\(result.errors)")
    let facts = try result.json(as: Facts.self)
    #expect(facts.clock == "unknown" && facts.fromMs == 500 && facts.toMs == 3_000)
    #expect(try created() == "")
    #expect(try Probe.timingTexts(scratch.path("film.mp4")).map(\.t) == [500, 1_000, 1_500, 2_000, 2_500])
    let dated = try film("frames", "--fps", "2", "--start", "1767859512000", "--json").json(as: Facts.self)
    #expect(dated.clock == nil && dated.fromMs == 1_767_859_512_500)
    #expect(try created().hasPrefix("2026-01-08T08:05:12"))
  }

  /// `batch.json` states the captures, so `--fps` is for other inputs.
  @Test func picturesWithTimesKeepTheirDates() throws {
    _ = try scratch.directory("tmp")
    let facts = try film(Fixture("exact-1fps").path, "--fps", "2", "--json").json(as: Facts.self)
    #expect(facts.clock == nil && facts.fromMs == 1_767_859_512_340)
    #expect(try created().hasPrefix("2026-01-08T08:05:12"))
    #expect(try Probe.timingTexts(scratch.path("film.mp4")).first?.t == 1_767_859_512_340)
    try pictures(["1767859512000.jpg", "1767859513000.jpg"], in: "named")
    let named = try film("named", "--fps", "2", to: "named.mp4")
    #expect(named.status == 65 && named.errors.contains("capture times already"), "\(named.errors)")
  }

  /// The segments and the film have no name before the film is whole.
  @Test(arguments: ["mp4", "gif", "webp", "png"]) func killedCommandLeavesNothing(ending: String) throws {
    _ = try scratch.directory("tmp")
    let target = try scratch.directory("films")
    var random = Random(seed: 46)
    for _ in 0..<(Extent.isFull ? 200 : 8) {
      let process = Process()
      process.executableURL = URL(fileURLWithPath: EncoderWorker.path)
      process.arguments = ["film", Fixture("jittered").path, "--to", target + "/film.\(ending)"]
      process.environment = ["TMPDIR": scratch.path("tmp"), "PATH": "/usr/bin:/bin"]
      process.standardOutput = FileHandle.nullDevice
      process.standardError = FileHandle.nullDevice
      try process.run()
      usleep(UInt32.random(in: 1_000...400_000, using: &random))
      kill(process.processIdentifier, SIGKILL)
      process.waitUntilExit()
      // It may have been done before.
      #expect(try Set(names(in: target)).isSubset(of: ["film.\(ending)"]) && names(in: scratch.path("tmp")) == [])
    }
  }
}
