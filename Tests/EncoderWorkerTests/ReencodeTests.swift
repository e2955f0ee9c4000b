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
      #expect(right.removeValue(forKey: "reencodedFrom") as? String == old.sha256)
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
      #expect(status == (signal == SIGTERM ? 75 : -SIGKILL) || status == -SIGTERM)
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
    #expect(own.errors.contains("published there is something else; name another output directory"))
    #expect(try snapshot(of: session.path) == before)
    #expect(try reencode(session.path).status == 0)
    #expect(try reencode(session.path, to: "again", "--max-side", "100").status == 65)
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
    #expect(text.errors.contains("batch.json: invalid data; name a directory OUTPUT/SESSION, or an MP4"))
    #expect(try reencode(scratch.path("nothing.mp4")).status == 65)
  }

  // MARK: Other tools' films

  private static let start: Int64 = 1_767_859_512_340
  private static let instants: [Int64] = [0, 900, 1_000, 3_333, 3_400, 7_001, 7_500, 12_000, 12_040, 13_900]

  /// Numbered pictures at irregular instants, as stock ffmpeg encodes them: limited range, BT.709, B-frames.
  private func film(_ name: String, _ options: [String]) throws -> String {
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
        "scale=in_range=full:out_range=tv:out_color_matrix=bt709,format=yuv420p", "-vsync", "vfr", "-enc_time_base",
        "1:1000", "-video_track_timescale", "90000", "-colorspace", "bt709", "-color_range", "tv", "-color_primaries",
        "bt709", "-color_trc", "bt709",
      ] + options + [scratch.path(name)])
    return scratch.path(name)
  }

  @Test(arguments: [
    ["-c:v", "libx264", "-bf", "3", "-g", "4"], ["-c:v", "libx265", "-x265-params", "log-level=none"],
  ])
  func anotherToolsFilmKeepsItsInstants(codec: [String]) throws {
    let film = try film("film.mp4", codec + ["-metadata", "creation_time=2026-01-08T08:05:12Z"])
    let result = try reencode(film)
    try #require(result.status == 0, "\(result.errors)")
    let session = try PublishedSession(scratch.path("again/film"))
    let pictures = try Probe(film).packets(of: 0).map(\.pts).sorted()
    #expect(session.index.startMs == 1_767_859_512_000)
    #expect(session.captured.map { ($0.timeMs - session.index.startMs) * 90 } == pictures.map { $0 - pictures[0] })
    #expect(session.captured.count == Self.instants.count)
    #expect(try EncoderWorker.run("verify", session.path).status == 0)
    let originals = try Pixels.decode(film, width: 180, height: 320)
    for manifest in session.manifests {
      let decoded = try Pixels.decode(session.video(manifest), width: 180, height: 320)
      let video = try Probe(session.video(manifest)).packets(of: 0)
      for (frame, offset) in zip(manifest.frames, manifest.offsetsMs) {
        let index = try #require(video.firstIndex { $0.pts == offset * 90 })
        let number = try #require(session.captured.firstIndex { $0.timeMs == frame.timeMs })
        #expect(decoded[index].number == number)
        #expect(decoded[index].difference(to: originals[number]) < 3)
      }
    }
    let before = try snapshot(of: session.path)
    #expect(try reencode(film, to: "again", "--json").text.contains("\"encoded\":0,"))
    #expect(try snapshot(of: session.path) == before)
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
    let bright = try self.film("bright-\(Self.start).mp4", ["-color_trc", "smpte2084"])
    #expect(try reencode(bright).errors.contains("high dynamic range"))
    #expect(!FileManager.default.fileExists(atPath: scratch.path("again/walk")))
  }
}
