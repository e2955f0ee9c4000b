import Foundation
import TestSupport
import Testing

/// Finished sessions, and other tools' films, encoded anew: other pixels at the same instants.
@Suite struct ReencodeTests {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private func reencode(_ source: String, to output: String = "again", _ options: String...) throws -> Tool.Result {
    try Tool.run(
      EncoderWorker.path, ["reencode", source, "--output", scratch.path(output), "--quality", "small"] + options)
  }

  private func stitch(_ session: PublishedSession, to name: String) throws -> String {
    let result = try EncoderWorker.run("stitch", session.path, "--to", scratch.path(name))
    try #require(result.status == 0, "\(result.errors)")
    return scratch.path(name)
  }

  @Test(arguments: Fixture.all + Fixture.corpus)
  func allButThePixelsStays(fixture: Fixture) throws {
    let session = try EncoderWorker.encode(fixture, into: scratch)
    let result = try reencode(session.path)
    try #require(result.status == 0, "\(result.errors)")
    let again = try PublishedSession(scratch.path("again/" + fixture.name))
    let verification = try EncoderWorker.run("verify", again.path)
    #expect(verification.status == 0, "\(verification.text)")
    let (one, two) = (try stitch(session, to: "one.mp4"), try stitch(again, to: "two.mp4"))
    let (before, after) = (try Probe(one), try Probe(two))
    for track in 0...1 {
      #expect(before.packets(of: track).map(\.pts) == after.packets(of: track).map(\.pts))
      #expect(before.packets(of: track).map(\.duration) == after.packets(of: track).map(\.duration))
      #expect(before.packets(of: track).map(\.isKey) == after.packets(of: track).map(\.isKey))
    }
    #expect(try Probe.timingTexts(one) == Probe.timingTexts(two))
    #expect(again.index.bytes < session.index.bytes)
    #expect(again.index.gaps == session.index.gaps && again.index.complete == session.index.complete)
    // What a manifest says of anything but the coded pictures is what it said.
    for (old, new) in zip(session.manifests, again.manifests) {
      var (left, right) = (try Self.members(session, old), try Self.members(again, new))
      #expect(
        right.removeValue(forKey: "reencodedFrom") as? String == left.removeValue(forKey: "manifestSha256") as? String)
      for key in ["bytes", "sha256", "manifestSha256", "encoder"] {
        left[key] = nil
        right[key] = nil
      }
      #expect(NSDictionary(dictionary: left) == NSDictionary(dictionary: right))
      let pictures = try Pixels.decode(again.video(new), width: new.codedWidth, height: new.codedHeight)
      let originals = try Pixels.decode(session.video(old), width: old.codedWidth, height: old.codedHeight)
      #expect(pictures.count == originals.count)
      guard Fixture.all.contains(where: { $0.path == fixture.path }) else { continue }
      #expect(zip(pictures, originals).allSatisfy { $0.difference(to: $1) < 3 })
    }
  }

  private static func members(_ session: PublishedSession, _ manifest: PublishedSession.Manifest) throws -> [String:
    Any]
  {
    let file = session.path + "/" + manifest.file.replacingOccurrences(of: ".mp4", with: ".json")
    let json = try JSONSerialization.jsonObject(with: Data(contentsOf: URL(fileURLWithPath: file)))
    return try #require(json as? [String: Any])
  }

  @Test(arguments: [("rotation", 100), ("odd-size", 64), ("exact-1fps", 5_000)])
  func noSideIsLongerThanWasAskedFor(fixture: String, side: Int) throws {
    let session = try EncoderWorker.encode(Fixture(fixture), into: scratch)
    try #require(try reencode(session.path, to: "again", "--max-side", "\(side)").status == 0)
    let again = try PublishedSession(scratch.path("again/" + fixture))
    #expect(try EncoderWorker.run("verify", again.path).status == 0)
    for (old, new) in zip(session.manifests, again.manifests) {
      let longest = max(old.width, old.height)
      #expect(max(new.width, new.height) == min(side, longest))
      let scale = Double(min(side, longest)) / Double(longest)
      #expect(abs(Double(new.width) - Double(old.width) * scale) <= 0.5)
      #expect(abs(Double(new.height) - Double(old.height) * scale) <= 0.5)
      #expect(new.codedWidth == new.width + new.width % 2 && new.codedHeight == new.height + new.height % 2)
      let pictures = try Pixels.decode(again.video(new), width: new.codedWidth, height: new.codedHeight)
      let originals = try Pixels.decode(session.video(old), width: old.codedWidth, height: old.codedHeight)
      #expect(pictures.map(\.number) == originals.map(\.number))
    }
  }

  /// Stopped at any moment and started again: the same bytes as at one go.
  @Test(arguments: [SIGTERM, SIGKILL])
  func whatWasStoppedGoesOn(signal: Int32) throws {
    let spool = try TestSpool()
    for number in 0..<40 { try spool.addSmall("walk@\(number)", startMs: 1_767_859_512_340 + Int64(number) * 2_000) }
    try #require(try spool.drain().status == 0)
    let session = spool.output + "/walk"
    try #require(try reencode(session, to: "undisturbed").status == 0)
    let arguments = ["reencode", session, "--output", scratch.path("again"), "--quality", "small", "--jobs", "1"]
    var stops = 0
    for milliseconds in stride(from: 30, through: 3_000, by: 15) {
      let worker = try RunningWorker(arguments)
      usleep(UInt32(milliseconds) * 1_000)
      worker.signal(signal)
      let status = worker.wait()
      if status == 0 { break }
      stops += 1
      // Before it could take the signal, it ends by it.
      #expect(status == (signal == SIGTERM ? 75 : -SIGKILL) || (status == -SIGTERM && milliseconds < 100))
    }
    #expect(stops > 0)
    try #require(try reencode(session).status == 0)
    let difference = try Tool.run(
      "diff", ["-r", "--exclude=.staging", scratch.path("undisturbed"), scratch.path("again")])
    #expect(difference.text == "")
    let before = try snapshot(of: scratch.path("again/walk"))
    let result = try reencode(session, to: "again", "--json")
    #expect(result.text.contains("\"encoded\":0,"))
    #expect(try snapshot(of: scratch.path("again/walk")) == before)
    #expect(try names(in: scratch.path("again/.staging")).isEmpty)
  }

  @Test func whatIsThereAlreadyIsNotMixedWithOtherThings() throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let before = try snapshot(of: session.path)
    let own = try reencode(session.path, to: "output")
    #expect(own.status == 65)
    #expect(own.errors.contains("published there already, with other settings or from another source"))
    #expect(try snapshot(of: session.path) == before)
    #expect(try reencode(session.path).status == 0)
    #expect(try reencode(session.path, to: "again", "--max-side", "100").status == 65)
    #expect(try reencode(session.path, to: "again", "--session", "other").status == 64)
    // Not taken for done when it is not whole any more.
    let again = try PublishedSession(scratch.path("again/exact-1fps"))
    try Data().write(to: URL(fileURLWithPath: again.video(again.manifests[0])))
    let damaged = try reencode(session.path)
    #expect(damaged.status == 65)
    #expect(damaged.errors.contains("segment-1767859512340.mp4: not the file its manifest describes"))
  }

  /// Two at once that want different things: one of them has its way, segment by segment, and nothing is damaged.
  @Test func twoAtOnceDamageNothing() throws {
    let spool = try TestSpool()
    for number in 0..<12 { try spool.addSmall("walk@\(number)", startMs: 1_767_859_512_340 + Int64(number) * 2_000) }
    try #require(try spool.drain().status == 0)
    for round in 0..<4 {
      let output = scratch.path("round\(round)")
      let workers = try ["small", "sharp", "small"].map {
        try RunningWorker(["reencode", spool.output + "/walk", "--output", output, "--quality", $0, "--jobs", "1"])
      }
      let ends = workers.map { $0.wait() }
      #expect(ends.allSatisfy { $0 == 0 || $0 == 65 }, "\(ends)")
      let verification = try EncoderWorker.run("verify", output + "/walk")
      #expect(!verification.text.contains("not the file its manifest describes"), "\(verification.text)")
    }
  }

  @Test func whatIsDamagedIsSaid() throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let file = session.video(session.manifests[1])
    try Data("no video".utf8).write(to: URL(fileURLWithPath: file))
    let result = try reencode(session.path)
    #expect(result.status == 65)
    #expect(result.errors.contains("\(session.manifests[1].file): not the file its manifest describes"))
    // The rest is there.
    #expect(try PublishedSession(scratch.path("again/exact-1fps")).manifests.count == 2)
    let text = try reencode(Fixture("exact-1fps").path + "/batch.json")
    #expect(text.status == 65)
    #expect(text.errors.contains("name a directory OUTPUT/SESSION, or an MP4"))
    #expect(try reencode(scratch.path("nothing.mp4")).status == 65)
  }

  // MARK: Other tools' films

  private static let start: Int64 = 1_767_859_512_340
  private static let instants: [Int64] = [0, 900, 1_000, 3_333, 3_400, 7_001, 7_500, 12_000, 12_040, 13_900]

  /// Numbered pictures at irregular instants, as stock ffmpeg encodes them: limited range, BT.709, B-frames.
  private func film(
    _ name: String, _ options: [String], format: String = "yuv420p", matrix: String = "bt709", range: String = "tv"
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
        "scale=in_range=full:out_range=\(range):out_color_matrix=\(matrix),format=\(format)", "-vsync", "vfr",
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
  func anotherToolsFilmKeepsItsInstants(codec: [String]) throws {
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

  /// Each frame's picture is the film's, as stock ffmpeg decodes both.
  private func expect(_ session: PublishedSession, looksLike film: String) throws {
    let originals = try Pixels.decode(film, width: 180, height: 320)
    for manifest in session.manifests {
      let decoded = try Pixels.decode(session.video(manifest), width: 180, height: 320)
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

  /// Whatever way a film's colours are written in, said or not, ours are what players show of it.
  @Test(arguments: [
    Colours(format: "yuv420p", matrix: "bt709", range: "tv", isTagged: true),
    Colours(format: "yuv420p", matrix: "smpte170m", range: "tv", isTagged: true),
    Colours(format: "yuv420p", matrix: "smpte170m", range: "tv", isTagged: false),
    Colours(format: "yuv420p", matrix: "smpte170m", range: "pc", isTagged: true),
    Colours(format: "yuv420p", matrix: "bt709", range: "pc", isTagged: true),
    Colours(format: "yuv444p", matrix: "smpte170m", range: "tv", isTagged: true),
    Colours(format: "yuv422p10le", matrix: "bt709", range: "tv", isTagged: true),
  ])
  func aFilmsColoursStay(colours: Colours) throws {
    let film = try film(
      "film-\(Self.start).mp4",
      colours.isTagged ? Self.tags(colours.matrix, colours.range) : ["-color_range", "unknown"],
      format: colours.format, matrix: colours.matrix == "smpte170m" ? "bt601" : colours.matrix, range: colours.range)
    for side in ["8192", "200"] {
      let result = try Tool.run(
        EncoderWorker.path,
        ["reencode", film, "--output", scratch.path(side), "--quality", "sharp", "--max-side", side])
      try #require(result.status == 0, "\(result.errors)")
      let session = try PublishedSession(scratch.path("\(side)/film-\(Self.start)"))
      let manifest = session.manifests[0]
      let (width, height) = (manifest.codedWidth, manifest.codedHeight)
      let own = try Pixels.decode(session.video(manifest), width: width, height: height)[0]
      // What the screenshot was painted with: a bar of (38, 78, 140), black patches, near white below.
      let bar = own[width - 4, height / 40]
      #expect(zip(bar, [38, 78, 140]).allSatisfy { abs(Int($0) - $1) <= 6 }, "\(colours): \(bar)")
      #expect(own[width / 16, height * 3 / 8].allSatisfy { $0 <= 6 }, "\(colours)")
      #expect(own[width - 3, height - 3].allSatisfy { $0 >= 240 }, "\(colours)")
    }
  }

  /// Cut without encoding, so that the key frame is not shown, but needed.
  @Test func aFilmThatBeginsBehindItsKeyFrameIsTaken() throws {
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

  @Test func aTurnedFilmIsShownUpright() throws {
    let lying = try film("lying.mp4", [])
    let film = scratch.path("turned-\(Self.start).mp4")
    try Tool.output("ffmpeg", ["-v", "error", "-i", lying, "-c", "copy", "-metadata:s:v", "rotate=90", film])
    try #require(try reencode(film).status == 0)
    let session = try PublishedSession(scratch.path("again/turned-\(Self.start)"))
    #expect(session.index.startMs == Self.start)
    let manifest = session.manifests[0]
    #expect((manifest.width, manifest.height) == (320, 180))
    // As stock ffmpeg turns it.
    let wanted = try Pixels.decode(film, width: 320, height: 180)[0]
    #expect(try Pixels.decode(session.video(manifest), width: 320, height: 180)[0].difference(to: wanted) < 3)
  }

  /// Our own film of a screen that was rotated: pictures of two sizes in one track.
  @Test func aFilmOfChangingSizeBecomesSegmentsOfOneSizeEach() throws {
    let session = try EncoderWorker.encode(Fixture("rotation"), into: scratch)
    let film = try stitch(session, to: "film.mp4")
    try #require(
      try reencode(film, to: "again", "--start", "\(session.index.startMs)", "--session", "walk").status == 0)
    let again = try PublishedSession(scratch.path("again/walk"))
    #expect(again.manifests.map(\.width) == session.manifests.map(\.width))
    #expect(again.captured.map(\.timeMs) == session.captured.map(\.timeMs))
    #expect(try EncoderWorker.run("verify", again.path).status == 0)
  }

  @Test func aFilmThatSaysTooLittleIsRefusedWithAdvice() throws {
    let film = try film("a film.mp4", [])
    let unnamed = try reencode(film)
    #expect(unnamed.status == 65)
    #expect(unnamed.errors.contains("a film.mp4: no name for a session; give --session"))
    let undated = try reencode(film, to: "again", "--session", "walk")
    #expect(undated.errors.contains("it does not say when it was recorded; give --start"))
    #expect(try reencode(film, to: "again", "--session", "walk", "--start", "12").status == 65)
    #expect(try reencode(film, to: "again", "--session", "walk", "--start", "9223372036854775807").status == 65)
    let bright = try self.film("bright-\(Self.start).mp4", ["-color_trc", "smpte2084"])
    #expect(try reencode(bright).errors.contains("high dynamic range"))
    let wide = try self.film("wide-\(Self.start).mp4", ["-aspect", "1:1"])
    #expect(try reencode(wide).errors.contains("pixels that are not square"))
    // The file is to blame, not the machine: 65, not 75.
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
