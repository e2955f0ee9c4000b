import Foundation
import JSON
import TestSupport
import Testing

/// Pictures that come once a minute, and segments longer than five seconds.
@Suite struct TimeLapseTests {
  private let scratch: ScratchDirectory
  private static let start: Int64 = 1_767_859_200_000

  init() throws { scratch = try ScratchDirectory() }

  /// A picture a minute, for two hours.
  private func lapse() throws {
    _ = try scratch.directory("lapse")
    for number in 0..<120 {
      try scratch.file(
        "lapse/\(Self.start + 60_000 * Int64(number)).jpg", Fixture("exact-1fps").bytes("000\(number % 10).jpg"))
    }
  }

  private func encode(_ options: String..., output: String = "out") throws -> (PublishedSession, errors: String) {
    let result = try Tool.run(
      EncoderWorker.path, ["encode", "lapse", "-o", output, "--session", "s"] + options, in: scratch.url)
    #expect(result.status == 0, "\(result.errors)")
    return (try PublishedSession(scratch.path(output + "/s")), result.errors)
  }

  @Test func adviceIsTriedAndHolds() throws {
    try lapse()
    let (session, errors) = try encode()
    #expect(session.manifests.count == 120)
    let advice = try #require(
      errors.split(separator: "\n").first { $0.contains("--capture onChange --segment 600 makes 12 segments of it") })
    #expect(advice.contains("6600 s of 7200 s are gaps"), "\(advice)")
    let inspected = try Tool.run(
      EncoderWorker.path, ["encode", "--dry-run", "lapse", "--session", "s"], in: scratch.url)
    #expect(inspected.text.contains("--capture onChange --segment 600 makes 12 segments of it, not 120"))
    let (followed, silence) = try encode("--capture", "onChange", "--segment", "600", output: "followed")
    #expect(silence.isEmpty, "\(silence)")
    #expect(followed.manifests.count == 12)
    #expect(!advice.contains("at most some"), "\(advice)")
    // Each picture is on screen for its minute.
    #expect(followed.manifests.flatMap(\.frames).map(\.holdMs) == Array(repeating: 60_000, count: 120))
    #expect(followed.manifests.allSatisfy { $0.gapAfterMs == 0 })
    let verified = try Tool.run(EncoderWorker.path, ["verify", "followed/s"], in: scratch.url)
    #expect(verified.status == 0, "\(verified.errors)")
  }

  /// A reader that is not ours finds one key frame, at 0, and the whole time.
  @Test func longSegmentIsOneGroupOfPictures() throws {
    try lapse()
    let session = try encode("--capture", "onChange", "--segment", "600").0
    let file = scratch.path("out/s/" + session.manifests[0].file)
    let probe = try Tool.output(
      "ffprobe",
      [
        "-v", "error", "-select_streams", "v", "-show_entries", "packet=pts,flags:stream=duration_ts", "-of", "csv=p=0",
        file,
      ])
    let lines = String(decoding: probe, as: UTF8.self).split(separator: "\n").map(String.init)
    #expect(lines.filter { $0.contains("K") }.map { $0.split(separator: ",")[0] } == ["0"])
    #expect(lines.last?.hasPrefix("54000000") == true, "\(lines.last ?? "")")
    let manifest = try SegmentManifestJSON(file.replacingOccurrences(of: ".mp4", with: ".json"))
    #expect(manifest["encoder"]?.object?["segmentMs"]?.integer == 600_000)
  }

  @Test func liveStreamHasATargetThatLongSegmentsKeep() throws {
    try lapse()
    let enqueued = try Tool.run(
      EncoderWorker.path,
      ["enqueue", "--spool", "spool", "--session", "s", "--capture", "onChange", "lapse"], in: scratch.url)
    #expect(enqueued.status == 0, "\(enqueued.errors)")
    let drained = try Tool.run(
      EncoderWorker.path, ["run", "--spool", "spool", "--drain", "--hls", "--segment", "60"], in: scratch.url)
    #expect(drained.status == 0, "\(drained.errors)")
    let playlist = try String(
      contentsOf: URL(fileURLWithPath: scratch.path("spool/output/s/hls/session.m3u8")), encoding: .utf8)
    #expect(playlist.contains("#EXT-X-TARGETDURATION:120\n") && !playlist.contains("#EXT-X-GAP"), "\(playlist)")
    #expect(playlist.components(separatedBy: "#EXTINF:60.000").count == 121, "\(playlist)")
  }

  @Test(arguments: ["0", "601", "five"]) func lengthOutsideTheRangeIsRefused(length: String) throws {
    let result = try Tool.run(
      EncoderWorker.path, ["encode", Fixture("gap").path, "-o", "out", "--segment", length], in: scratch.url)
    #expect(result.status == 64 && result.errors.contains("--segment"), "\(result.errors)")
  }
}
