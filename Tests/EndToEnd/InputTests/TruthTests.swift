import Foundation
import TestSupport
import Testing

/// For every fixture and every real session, the times that stock tools read equal the capture times, to the tick.
@Suite struct TruthTests {
  /// The repeated frames for players are small: at most 300 bytes a second for an unchanged screen of five seconds.
  @Test(arguments: (Fixture.sample + Fixture.corpus).filter { $0.name != "masks" })
  func unchangedScreenCostsAtMost300BytesASecond(fixture: Fixture) throws {
    let scratch = try ScratchDirectory()
    let image = try #require(try names(in: fixture.path).first { $0.hasSuffix("jpg") })
    _ = try scratch.directory("still")
    try scratch.file("still/1767859512340.jpg", try fixture.bytes(image))
    try scratch.file(
      "still/batch.json", Array(#"{"version":1,"capture":"onChange","endMs":1767859517340}"#.utf8))
    let result = try EncoderWorker.run("encode", scratch.path("still"), "--output", scratch.path("output"))
    try #require(result.status == 0, "\(result.errors)")
    let video = try Probe(scratch.path("output/still/segment-1767859512340.mp4")).packets(of: 0)
    #expect(video.count > 1)
    #expect(video.dropFirst().reduce(0) { $0 + (Int($1.size) ?? 0) } <= 5 * 300)
  }

  @Test(arguments: Fixture.all + Fixture.corpus)
  func everyFrameIsAtItsCaptureInstant(fixture: Fixture) throws {
    let scratch = try ScratchDirectory()
    let session = try EncoderWorker.encode(fixture, into: scratch)
    #expect(!session.manifests.isEmpty)
    let files = session.manifests.map { session.video($0) }
    let probes = try files.map { try Probe($0) }
    let texts = try Probe.timingTexts(of: files)
    for (index, manifest) in session.manifests.enumerated() {
      try expectTrueTiming(probes[index], texts[index], manifest)
      try expectTruePicture(probes[index], files[index], manifest)
      try expectTrueFile(files[index], manifest)
    }
    try expectTrueSums(files, session.manifests)
    try expectTrueReports(files, session.manifests)
    // The short run checks the last segment only, which differs from the others.
    for index in Extent.of([files.count - 1], full: Array(files.indices)) {
      try expectSurvival(files[index], probes[index], session.manifests[index], scratch)
    }
    try expectOrder(session)
    try expectStitches(session, scratch)
  }

  private func expectTrueTiming(
    _ probe: Probe, _ texts: [TimingEntry], _ manifest: PublishedSession.Manifest
  ) throws {
    let ticks = manifest.durationMs * 90
    #expect(probe.streams.map(\.codecType) == ["video", "subtitle"])
    #expect(probe.streams.allSatisfy { $0.timeBase == "1/90000" && $0.startPts == 0 && $0.durationTs == ticks })
    #expect(
      probe.format.duration == String(format: "%d.%03d000", manifest.durationMs / 1_000, manifest.durationMs % 1_000))
    #expect(manifest.endMs - manifest.startMs == manifest.durationMs)
    #expect(manifest.frames.reduce(0) { $0 + $1.holdMs } == manifest.durationMs)

    let video = probe.packets(of: 0)
    #expect(video.map(\.pts) == video.map(\.dts))
    #expect(video.map(\.isKey) == [true] + Array(repeating: false, count: video.count - 1))
    #expect(zip(video, video.dropFirst()).allSatisfy { $0.pts + $0.duration == $1.pts })
    #expect(video.first?.pts == 0)
    #expect(video.last.map { $0.pts + $0.duration } == ticks)
    #expect(video.count == manifest.samples)
    let offsets = manifest.offsetsMs.map { $0 * 90 }
    for (frame, offset) in zip(manifest.frames, offsets) {
      if frame.status == "captured" { #expect(offset == (frame.timeMs - manifest.startMs) * 90) }
      #expect(video.contains { $0.pts == offset })
    }
    // Repeats divide a hold evenly; regular captures need no repeats.
    for (frame, offset) in zip(manifest.frames, offsets) {
      let samples = video.filter { $0.pts >= offset && $0.pts < offset + frame.holdMs * 90 }.map(\.duration)
      #expect(samples.reduce(0, +) == frame.holdMs * 90)
      #expect((samples.max() ?? 0) - (samples.min() ?? 0) <= 1)
    }
    let holds = manifest.frames.map(\.holdMs)
    if holds.count > 1 && holds.allSatisfy({ (900...1_100).contains($0) }) { #expect(video.count == holds.count) }

    let timing = probe.packets(of: 1)
    #expect(timing.map(\.pts) == offsets)
    #expect(timing.map(\.duration) == manifest.frames.map { $0.holdMs * 90 })
    #expect(texts == manifest.frames.map { TimingEntry($0) })
  }

  private func expectTruePicture(_ probe: Probe, _ file: String, _ manifest: PublishedSession.Manifest) throws {
    let video = probe.streams[0]
    #expect(video.codecName == "h264")
    #expect(video.codecTagString == "avc1")
    #expect((video.width, video.height) == (manifest.codedWidth, manifest.codedHeight))
    #expect(manifest.codedWidth == manifest.width + manifest.width % 2)
    #expect(manifest.codedHeight == manifest.height + manifest.height % 2)
    #expect(video.hasBFrames == 0)
    #expect(video.fieldOrder == "progressive")
    #expect(video.colorPrimaries == "bt709")
    #expect(video.colorTransfer == "iec61966-2-1")
    #expect(video.colorSpace == "smpte170m")
    #expect(video.colorRange == "tv")
    #expect(video.level == smallestLevel(manifest.codedWidth, manifest.codedHeight))
    #expect(probe.streams[1].disposition["default"] == 0)
    // The codec string equals the decoder configuration: profile, constraints, level.
    let bytes = try Data(contentsOf: URL(fileURLWithPath: file))
    let configuration = try #require(bytes.range(of: Data("avcC".utf8)))
    let profile = bytes[(configuration.upperBound + 1)..<(configuration.upperBound + 4)]
    #expect(manifest.codec == "avc1." + profile.map { String(format: "%02X", $0) }.joined())
    #expect(Int(profile[profile.endIndex - 1]) == video.level)
  }

  private func expectTrueFile(_ file: String, _ manifest: PublishedSession.Manifest) throws {
    let bytes = try Data(contentsOf: URL(fileURLWithPath: file))
    #expect(bytes.count == manifest.bytes)
    var types: [String] = []
    var offset = 0
    while offset + 8 <= bytes.count {
      types.append(String(decoding: bytes[offset + 4..<offset + 8], as: UTF8.self))
      offset += bytes[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
    }
    #expect(types == ["ftyp", "moov", "mdat"])
    #expect(offset == bytes.count)
  }

  private func expectTrueSums(_ files: [String], _ manifests: [PublishedSession.Manifest]) throws {
    let sums = String(decoding: try Tool.output("sha256sum", files), as: UTF8.self).split(separator: "\n")
    #expect(sums.map { String($0.prefix(64)) } == manifests.map(\.sha256))
  }

  /// Expects mediainfo to report the manifests' durations and formats.
  private func expectTrueReports(_ files: [String], _ manifests: [PublishedSession.Manifest]) throws {
    let json = try Tool.output("mediainfo", ["--Output=JSON"] + files)
    let reports =
      files.count == 1
      ? [try JSONDecoder().decode(MediaInfo.self, from: json)] : try JSONDecoder().decode([MediaInfo].self, from: json)
    try #require(reports.count == files.count)
    for (report, manifest) in zip(reports.map(\.media.track), manifests) {
      let seconds = String(format: "%d.%03d", manifest.durationMs / 1_000, manifest.durationMs % 1_000)
      try #require(report.map(\.type) == ["General", "Video", "Text"])
      #expect(report.allSatisfy { $0.duration.map { Double($0) == Double(seconds) } ?? false })
      #expect(report[1].scanType == "Progressive")
      #expect(report[1].colourRange == "Limited")
      #expect(report[2].format == "Timed Text")
    }
  }

  /// Expects consecutive segments, and a session manifest that agrees with the segments' manifests.
  private func expectOrder(_ session: PublishedSession) throws {
    let index = session.index
    #expect(index.format == "session-manifest/1")
    #expect(index.segments.map(\.file) == session.manifests.map(\.file))
    #expect(index.segments.map(\.frames) == session.manifests.map(\.frames.count))
    #expect(index.frames == session.captured.count)
    #expect(index.bytes == session.manifests.reduce(0) { $0 + $1.bytes })
    #expect(index.startMs == session.manifests.first?.startMs)
    #expect(index.complete == session.manifests.last?.final)
    for (one, next) in zip(session.manifests, session.manifests.dropFirst()) {
      #expect(one.endMs + one.gapAfterMs == next.startMs)
      #expect(next.frames[0].status == "captured" || next.frames[0].timeMs < next.startMs)
    }
    let expected = session.manifests.filter { $0.gapAfterMs > 0 }.map { PublishedSession.Index.Gap(after: $0) }
    #expect(index.gaps == expected)
    let shown = session.manifests.reduce(0) { $0 + $1.durationMs }
    #expect(index.durationMs == shown + expected.reduce(0) { $0 + $1.endMs - $1.startMs })
  }

  /// Expects the timing track and its times to survive a stream copy of all tracks.
  private func expectSurvival(
    _ file: String, _ original: Probe, _ manifest: PublishedSession.Manifest, _ scratch: ScratchDirectory
  ) throws {
    let copy = scratch.path("copy.mp4")
    try Tool.output("ffmpeg", ["-v", "error", "-y", "-i", file, "-map", "0", "-c", "copy", copy])
    let probe = try Probe(copy)
    #expect(probe.packets(of: 0).map(\.pts) == original.packets(of: 0).map(\.pts))
    #expect(probe.packets(of: 1).map(\.pts) == manifest.offsetsMs.map { $0 * 90 })
    #expect(probe.packets(of: 1).map(\.duration) == manifest.frames.map { $0.holdMs * 90 })
    #expect(try Probe.timingTexts(copy) == manifest.frames.map { TimingEntry($0) })
    // This is the README's command.
    let subtitles = try Tool.output("ffmpeg", ["-v", "error", "-i", file, "-map", "0:s", "-f", "srt", "-"])
    let lines = String(decoding: subtitles, as: UTF8.self).split(separator: "\n").filter { $0.hasPrefix("{") }
    #expect(lines.count == manifest.frames.count)
    #expect(lines.first?.contains("\"t\":\(manifest.frames[0].timeMs)") == true)
  }

  private func expectStitches(_ session: PublishedSession, _ scratch: ScratchDirectory) throws {
    let film = scratch.path("film.mp4")
    try stitch(session.path, to: film)
    let pts = Set(try Probe(film).packets(of: 0).map(\.pts))
    for frame in session.captured { #expect(pts.contains((frame.timeMs - session.index.startMs) * 90)) }
    let decoding = try Tool.run(
      "ffmpeg", ["-v", "error", "-i", film, "-map", "0:v", "-enc_time_base", "1:90000", "-f", "null", "-"])
    #expect(decoding.status == 0)
    #expect(decoding.errors == "")
  }
}

/// Returns the smallest level whose frame size and picture buffer hold a picture of this size (ITU-T H.264, table A-1),
/// as libavcodec counts them. One reference picture and one frame a second are within every level.
private func smallestLevel(_ width: Int, _ height: Int) -> Int {
  let across = (width + 15) / 16
  let down = (height + 15) / 16
  let levels = [
    (10, 99), (11, 396), (12, 396), (13, 396), (20, 396), (21, 792), (22, 1_620), (30, 1_620), (31, 3_600),
    (32, 5_120), (40, 8_192), (42, 8_704), (50, 22_080), (51, 36_864), (52, 36_864), (60, 139_264),
  ]
  return levels.first { _, size in across * down <= size && across * across <= 8 * size && down * down <= 8 * size }?.0
    ?? 0
}

private struct MediaInfo: Decodable {
  struct Media: Decodable { let track: [Track] }
  struct Track: Decodable {
    let type: String
    let format: String?
    let duration: String?
    let scanType: String?
    let colourRange: String?

    enum CodingKeys: String, CodingKey {
      case type = "@type"
      case format = "Format"
      case duration = "Duration"
      case scanType = "ScanType"
      case colourRange = "colour_range"
    }
  }

  let media: Media
}
