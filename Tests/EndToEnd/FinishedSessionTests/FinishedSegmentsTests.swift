import Foundation
import TestSupport
import Testing

/// `encode`: finished segments become a session, and their coded pictures stay as they are.
@Suite struct FinishedSegmentsTests {
  let scratch: ScratchDirectory
  private static let start = SegmentFolder.startMs

  init() throws { scratch = try ScratchDirectory() }

  private func run(_ folder: SegmentFolder, to output: String = "imported", _ options: String...) throws -> Tool.Result
  {
    try Tool.run(
      EncoderWorker.path, ["encode", folder.path, "--output", scratch.path(output), "--json"] + options)
  }

  /// Encodes a folder, and expects no refusal.
  private func imported(_ folder: SegmentFolder) throws -> PublishedSession {
    let result = try run(folder)
    try #require(result.status == 0, "\(result.errors)")
    let session = try PublishedSession(scratch.path("imported/" + (folder.path as NSString).lastPathComponent))
    let verification = try EncoderWorker.run("verify", session.path)
    #expect(verification.status == 0, "\(verification.text)")
    return session
  }

  private func film(_ path: String, _ name: String, _ options: String...) throws -> Data {
    let file = scratch.path(name)
    let temporary = try scratch.directory("temporary")
    let result = try Tool.run(
      EncoderWorker.path, ["stitch", path, "--to", file] + options, environment: ["TMPDIR": temporary])
    try #require(result.status == 0, "\(result.errors)")
    // Nothing of the pictures stays.
    #expect(try FileManager.default.subpathsOfDirectory(atPath: temporary).allSatisfy { !$0.hasSuffix(".mp4") })
    return try Data(contentsOf: URL(fileURLWithPath: file))
  }

  /// Copies the videos and events of a session, without its manifests: a gap behind the last segment is in them alone.
  private func segments(of session: PublishedSession) throws -> SegmentFolder {
    let folder = try SegmentFolder("segments/" + session.index.session, in: scratch)
    for name in try names(in: session.path) where name.hasSuffix(".mp4") || name.hasSuffix(".sentry.json") {
      try FileManager.default.copyItem(atPath: session.path + "/" + name, toPath: folder.file(name))
    }
    return folder
  }

  // MARK: - Our own segments

  private func expectTheSameFilm(of session: PublishedSession) throws {
    let folder = try segments(of: session)
    let again = try imported(folder)
    #expect(again.captured.map(\.timeMs) == session.captured.map(\.timeMs))
    #expect(again.captured.map(\.source) == session.captured.map(\.source))
    #expect(again.index.gaps == session.index.gaps.filter { $0.startMs < session.manifests.last?.startMs ?? 0 })
    for (old, new) in zip(session.manifests, again.manifests) {
      #expect(old.file == new.file && old.frames.map(\.holdMs) == new.frames.map(\.holdMs))
      #expect((old.width, old.height) == (new.width, new.height))
      #expect(old.sha256 == new.sha256)
    }
    // The notes on frames, which are chapters, are in the manifests alone.
    let hasNotes = try names(in: session.path).contains { name in
      try name.hasSuffix(".json")
        && String(contentsOfFile: session.path + "/" + name, encoding: .utf8).contains(#""note":"#)
    }
    if again.index.gaps == session.index.gaps, !hasNotes {
      let film = try film(session.path, "film.mp4")
      #expect(try self.film(again.path, "again.mp4") == film)
      #expect(try self.film(folder.path, "direct.mp4") == film)
    }
    if !hasNotes {
      let cut = try film(session.path, "cut.mp4", "--gaps", "cut")
      #expect(try film(folder.path, "direct.mp4", "--gaps", "cut") == cut)
    }
    // With the manifests beside them, nothing is lost.
    let whole = try EncoderWorker.run("encode", session.path, "-o", scratch.path("whole"))
    #expect(whole.status == 0, "\(whole.errors)")
    let copy = try PublishedSession(scratch.path("whole/" + session.index.session))
    #expect(copy.index.gaps == session.index.gaps && copy.index.complete == session.index.complete)
    if !hasNotes { #expect(try film(copy.path, "whole.mp4") == film(session.path, "film.mp4")) }
  }

  @Test(arguments: Fixture.all + Fixture.corpus)
  func ourOwnSegmentsGiveTheFilmOfTheSession(fixture: Fixture) throws {
    try expectTheSameFilm(of: EncoderWorker.encode(fixture, into: scratch, "--sentry"))
  }

  /// Batches that meet with jitter, gaps, changes of size, one to three frames a second.
  @Test(arguments: Extent.of(1...4, full: 1...24))
  func segmentsOfSeveralBatchesGiveTheFilmOfTheSession(seed: Int) throws {
    let generated = try GeneratedSession(seed: seed, in: scratch)
    for batch in generated.batches {
      try #require(try EncoderWorker.run("encode", batch, "-o", scratch.path("output"), "--sentry").status == 0)
    }
    try expectTheSameFilm(of: PublishedSession(scratch.path("output/" + generated.name)))
  }

  /// Then the event is right, and each coded picture is a frame.
  @Test func timingTrackOfAnotherTimeIsNotUsed() throws {
    let session = try EncoderWorker.encode(Fixture("single-frame"), into: scratch, "--sentry")
    let folder = try SegmentFolder(in: scratch)
    try FileManager.default.copyItem(atPath: session.video(session.manifests[0]), toPath: folder.file("0.mp4"))
    try folder.events([SegmentFolder.event(0, atMs: 60_000)])
    let result = try run(folder)
    #expect(result.status == 0)
    #expect(result.errors.contains("its timing track is of another time than its event, and is not used"))
    let again = try PublishedSession(scratch.path("imported/replay"))
    #expect(again.index.startMs == Self.start + 60_000)
    #expect(again.manifests[0].frames.count == session.manifests[0].samples)
    #expect(again.index.durationMs == session.manifests[0].durationMs)
  }

  // MARK: - Segments of Sentry's SDKs

  @Test(arguments: [SegmentFolder.Producer.ios, .android])
  func picturesOfAnSDKAreCopiedAndShownAtTheirTimes(producer: SegmentFolder.Producer) throws {
    let folder = try SegmentFolder(in: scratch)
    for segment in 0..<2 { try folder.video("segment-\(segment).mp4", as: producer) }
    try folder.events([SegmentFolder.event(0, atMs: 0), SegmentFolder.event(1, atMs: 5_040)])
    let session = try imported(folder)
    let captures = session.captured.map { $0.timeMs - Self.start }
    #expect(captures == [0, 1_000, 2_000, 3_000, 4_000, 5_040, 6_040, 7_040, 8_040, 9_040])
    #expect(session.captured[1].source == "segment-0.mp4#1")
    // 40 ms are less than half an interval: a seam.
    #expect(session.index.gaps.isEmpty && session.index.durationMs == 10_040)
    let colours = try Probe(folder.file("segment-0.mp4")).streams[0]
    for (segment, manifest) in session.manifests.enumerated() {
      let (before, after) = (try Probe(folder.file("segment-\(segment).mp4")), try Probe(session.video(manifest)))
      #expect(before.packets.map(\.size) == after.packets(of: 0).map(\.size))
      #expect(after.streams[0].colorSpace == colours.colorSpace)
      #expect(after.streams[0].colorPrimaries == colours.colorPrimaries)
      #expect(try Conformance.faults(ofMovie: session.video(manifest)) == [])
    }
    let sources = try Pixels.decode((0..<2).map { (folder.file("segment-\($0).mp4"), 64, 96) }).flatMap { $0 }
    #expect(try session.pictures().flatMap { $0.map(\.bytes) } == sources.map(\.bytes))
    // All that is made of sessions works with these segments.
    _ = try film(folder.path, "film.mp4")
    let film = try Probe(scratch.path("film.mp4"))
    #expect(film.packets(of: 0).map(\.pts) == captures.map { $0 * 90 })
    #expect(film.streams[0].colorSpace == colours.colorSpace)
    let shown = try Pixels.decode(scratch.path("film.mp4"), width: 64, height: 96)
    #expect(shown.map(\.bytes) == sources.map(\.bytes))
    if producer == .ios {
      // Each of its pictures is a key frame.
      _ = try self.film(session.path, "clip.mp4", "--from", "+2.5s", "--to-time", "+4s")
      let clip = try Pixels.decode(scratch.path("clip.mp4"), width: 64, height: 96)
      #expect(clip.first?.bytes == sources[2].bytes)
    }
    #expect(try EncoderWorker.run("stitch", folder.path, "--to", scratch.path("hls"), "--format", "hls").status == 0)
    #expect(try Probe(scratch.path("hls/session.m3u8")).packets.count == 10)
    let sheet = try EncoderWorker.run("pictures", "--sheet", folder.path, "--to", scratch.path("sheet.png"), "--json")
    #expect(sheet.status == 0 && sheet.text.contains("\"captures\":10,"), "\(sheet.errors)")
    let server = try RunningServer(["serve", scratch.path("imported")])
    #expect(try server.get("/sessions/replay/timeline.json").text.contains("\"frames\":10"))
  }

  @Test func timestampsOrderSegmentsAndUnrecordedTimeIsAGap() throws {
    let folder = try SegmentFolder(in: scratch)
    try folder.video("replay-0.mp4", frames: 2)
    try folder.video("replay-1.mp4", frames: 3, size: "96x64")
    try folder.events([SegmentFolder.event(0, atMs: 10_000), SegmentFolder.event(1, atMs: 0)])
    let session = try imported(folder)
    #expect(session.manifests.map(\.batch) == ["replay-1.mp4", "replay-0.mp4"])
    #expect(session.manifests.map(\.width) == [96, 64])
    #expect(session.index.gaps.map { [$0.startMs - Self.start, $0.endMs - Self.start] } == [[3_000, 10_000]])
    _ = try film(folder.path, "film.mp4")
    #expect(try Probe(scratch.path("film.mp4")).streams[0].durationTs == 12_000 * 90)
  }

  /// Android's muxer gives a picture that is alone no duration.
  @Test func pictureWithoutADurationIsShownForAnInterval() throws {
    let folder = try SegmentFolder(in: scratch)
    try folder.video("0.mp4", frames: 1)
    try folder.copy("0.mp4", as: "1.mp4")
    try folder.video("2.mp4")
    for name in ["0.mp4", "1.mp4"] { try folder.write(name, Self.withoutDuration(folder.bytes(name))) }
    try folder.events([
      SegmentFolder.event(0, atMs: 0, duration: 1_000), SegmentFolder.event(1, atMs: 20_000, duration: 0),
      SegmentFolder.event(2, atMs: 40_000, duration: 0),
    ])
    let result = try run(folder)
    #expect(result.status == 0)
    #expect(result.errors.contains("refused 1.mp4: no duration"))
    #expect(result.errors.contains("0.mp4: its last picture has no duration in the file, and is shown for 1000 ms"))
    // The media's duration counts, not the event's.
    let session = try PublishedSession(scratch.path("imported/replay"))
    #expect(session.manifests.map { [$0.startMs - Self.start, $0.durationMs] } == [[0, 1_000], [40_000, 5_000]])
  }

  /// Sets the duration of the sample and those in all headers to zero.
  private static func withoutDuration(_ file: Data) -> Data {
    var file = file
    for (type, offset) in [("stts", 16), ("mdhd", 20), ("tkhd", 24), ("mvhd", 20)] {
      guard let found = file.range(of: Data(type.utf8)) else { continue }
      let start = found.lowerBound + offset
      file.replaceSubrange(start..<start + 4, with: [0, 0, 0, 0])
    }
    return file
  }

  @Test func timesBetweenMillisecondsAreRoundedAndNoted() throws {
    let folder = try SegmentFolder(in: scratch)
    try folder.video("\(Self.start).mp4", as: .ios, frames: 6, rate: 30)
    let session = try imported(folder)
    #expect(session.captured.map { $0.timeMs - Self.start } == [0, 33, 67, 100, 133, 167])
    #expect(session.manifests[0].durationMs == 200)
    let notes = session.manifests[0].frames.map { $0.note != nil }
    #expect(notes == [false, true, true, false, true, true])
  }

  @Test func longVideoIsCutAtKeyFrames() throws {
    let folder = try SegmentFolder(in: scratch)
    try folder.video("\(Self.start).mp4", as: .ios, frames: 13)
    #expect(try imported(folder).manifests.map { $0.frames.count } == [5, 5, 3])
    let whole = try SegmentFolder("whole", in: scratch)
    try whole.video("\(Self.start).mp4", as: .android, frames: 13)
    #expect(try imported(whole).manifests.map { $0.frames.count } == [13])
  }
}
