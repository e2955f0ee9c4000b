import Foundation
import TestSupport
import Testing

/// `encode` with finished segments that overlap, are damaged, or cannot be copied, and with runs that are killed.
@Suite struct FinishedSegmentsRefusalTests {
  let scratch: ScratchDirectory
  private let folder: SegmentFolder
  private static let start = SegmentFolder.startMs

  init() throws {
    scratch = try ScratchDirectory()
    folder = try SegmentFolder(in: scratch)
  }

  private struct Result: Decodable {
    struct Refused: Decodable {
      let source: String
      let reason: String
    }

    struct Error: Decodable {
      let cause: String
      let advice: String
    }

    let segments: Int?
    let duplicate: Bool?
    let refused: [Refused]?
    let warnings: [String]?
    /// Without a published segment.
    let error: Error?
  }

  /// Encodes the folder.
  ///
  /// - Returns: the starts of the published segments, from the first video's start, and the program's report.
  private func imported(status: Int32) throws -> (starts: [Int64], result: Result) {
    let run = try EncoderWorker.run("encode", folder.path, "-o", scratch.path("imported"), "--json")
    #expect(run.status == status, "\(run.errors)")
    let result = try JSONDecoder().decode(Result.self, from: run.output)
    let path = scratch.path("imported/replay")
    guard FileManager.default.fileExists(atPath: path) else { return ([], result) }
    return (try PublishedSession(path).manifests.map { $0.startMs - Self.start }, result)
  }

  @Test func overlappingVideoIsCutWhereTheNextBegins() throws {
    for segment in 0..<3 { try folder.video("\(segment).mp4") }
    try folder.events([
      SegmentFolder.event(0, atMs: 0), SegmentFolder.event(1, atMs: 3_200), SegmentFolder.event(2, atMs: 8_000),
    ])
    let (starts, result) = try imported(status: 0)
    #expect(starts == [0, 3_200, 8_000])
    #expect(
      result.warnings == ["0.mp4: cut 1800 ms before its end, where 1.mp4 begins; 1 frame left out"])
    let session = try PublishedSession(scratch.path("imported/replay"))
    #expect(session.manifests.map { $0.endMs - Self.start } == [3_200, 8_200, 13_000])
    #expect(session.manifests[0].refused.map(\.source) == ["0.mp4#4"])
    #expect(session.captured.count == 14)
    #expect(try EncoderWorker.run("verify", session.path).status == 0)
  }

  @Test func videosOfTheSameTimeArePublishedOnce() throws {
    try folder.video("0.mp4", frames: 2)
    try folder.video("long-0.mp4", frames: 4)
    try folder.copy("long-0.mp4", as: "z-0.mp4")
    try folder.video("inside-1.mp4", frames: 1)
    try folder.events([SegmentFolder.event(0, atMs: 0), SegmentFolder.event(1, atMs: 1_000)])
    let (starts, result) = try imported(status: 65)
    #expect(starts == [0] && result.segments == 1)
    #expect(result.refused?.map(\.source) == ["0.mp4", "z-0.mp4", "inside-1.mp4"])
    #expect(
      result.refused?.map(\.reason) == [
        "long-0.mp4 shows its time", "the same as long-0.mp4", "long-0.mp4 shows its time",
      ])
  }

  /// The others are published.
  @Test func videosThatCannotBeCopiedAreRefusedWithAReason() throws {
    try folder.video("0.mp4")
    try folder.video("1.mp4", as: .reordering, frames: 9)
    try folder.video("2.mp4", options: ["-c:v", "mpeg4", "-profile:v", "0"])
    try folder.video("3.mp4", options: ["-pix_fmt", "yuv444p", "-profile:v", "high444"])
    try folder.video("4.mp4", options: ["-map", "0", "-map", "0"])
    try folder.write("5.mp4", folder.bytes("0.mp4").prefix(900))
    try folder.write("6.mp4", "no video")
    try folder.write("7.mp4", "")
    try folder.write("8.mp4", Self.hugeTables(folder.bytes("0.mp4")))
    try folder.video("nameless.mp4")
    try folder.video("9.mp4", options: ["-vf", "setsar=2"])
    try folder.events((0...9).map { SegmentFolder.event($0, atMs: Int64($0) * 20_000) })
    let (starts, result) = try imported(status: 65)
    #expect(starts == [0])
    let reasons = Dictionary(uniqueKeysWithValues: (result.refused ?? []).map { ($0.source, $0.reason) })
    #expect(reasons["1.mp4"]?.contains("B-frames") == true && reasons["1.mp4"]?.contains("reencode") == true)
    #expect(reasons["2.mp4"]?.contains("no H.264") == true)
    #expect(reasons["3.mp4"]?.contains("no 4:2:0 of 8 bits") == true)
    #expect(reasons["4.mp4"]?.contains("several video tracks") == true)
    for damaged in ["5.mp4", "6.mp4", "8.mp4"] { #expect(reasons[damaged] != nil) }
    #expect(reasons["9.mp4"]?.contains("not square") == true)
    #expect(reasons["nameless.mp4"]?.contains("no event tells when it was recorded") == true)
    #expect(reasons["7.mp4"] == "an empty file")
    // `reencode` takes a video with B-frames.
    let again = try EncoderWorker.run(
      "reencode", folder.file("1.mp4"), "-o", scratch.path("anew"), "-q", "small", "--start", "\(Self.start)")
    #expect(again.status == 0, "\(again.errors)")
  }

  /// Lists two thousand million samples.
  private static func hugeTables(_ file: Data) -> Data {
    var file = file
    if let found = file.range(of: Data("stsz".utf8)) {
      file.replaceSubrange(found.lowerBound + 12..<found.lowerBound + 16, with: [0x7F, 0xFF, 0xFF, 0xFF])
    }
    return file
  }

  /// Each video is refused, or published as it can be decoded: the test support verifies all that is published.
  @Test func mutatedVideosAreRefusedOrPublishedAndVerified() throws {
    try folder.video("0.mp4", as: .ios)
    let (whole, count) = (try folder.bytes("0.mp4"), Int64(Extent.of(40, full: 2_000)))
    try FileManager.default.removeItem(atPath: folder.file("0.mp4"))
    var random = Random(seed: 5)
    for number in 0..<count {
      var bytes = whole
      for _ in 0..<random.int(1...8) {
        // `moov` lies at the end.
        let first = random.once(in: 4) ? 0 : max(0, bytes.count - 900)
        bytes[Int(random.int(Int64(first)...Int64(bytes.count - 1)))] = UInt8(random.int(0...255))
      }
      if random.once(in: 8) { bytes = bytes.prefix(Int(random.int(1...Int64(bytes.count)))) }
      try folder.write("\(Self.start + number * 20_000).mp4", bytes)
    }
    let run = try EncoderWorker.run("encode", folder.path, "-o", scratch.path("imported"), "--json")
    #expect([0, 65].contains(run.status), "\(run.errors)")
    let result = try JSONDecoder().decode(Result.self, from: run.output)
    let (segments, refused) = (try #require(result.segments), try #require(result.refused))
    #expect(segments + refused.count { !$0.source.contains("#") } == Int(count))
    #expect(segments > 0 && !refused.isEmpty)
  }

  @Test func damagedPictureIsNotPublished() throws {
    try folder.video("0.mp4", frames: 3, size: "640x480")
    var bytes = try folder.bytes("0.mp4")
    let media = try #require(bytes.range(of: Data("mdat".utf8))).upperBound
    for offset in stride(from: 2_000, to: 6_000, by: 7) { bytes[media + offset] ^= 0x55 }
    try folder.write("0.mp4", bytes)
    try folder.events([SegmentFolder.event(0, atMs: 0)])
    let (starts, result) = try imported(status: 65)
    #expect(starts.isEmpty && result.error?.cause.hasPrefix("none of its 1 video can be copied; 0.mp4: ") == true)
    #expect(try names(in: scratch.path("imported")).filter { !$0.hasPrefix(".") }.isEmpty)
  }

  @Test(arguments: [
    "[]", "[", "{\"type\":5}", "[[[[[[[[1]]]]]]]]",
    "{\"type\":5,\"timestamp\":1767859512,\"data\":{\"tag\":\"video\",\"payload\":{\"segmentId\":0}}}",
    "{\"type\":5,\"timestamp\":NaN,\"data\":{\"tag\":\"video\",\"payload\":{\"segmentId\":0}}}",
    "{\"type\":5,\"timestamp\":1e300,\"data\":{\"tag\":\"video\"}}\nnonsense",
  ])
  func videoWithoutAUsableEventIsRefusedWithAdvice(event: String) throws {
    try folder.video("0.mp4", frames: 1)
    try folder.write("event.json", event)
    let result = try EncoderWorker.run("encode", folder.path, "-o", scratch.path("imported"))
    #expect(result.status == 65)
    #expect(result.errors.contains("put its event beside it as NAME.json"))
  }

  @Test func eventIsFoundByNameSegmentIDOrTimestamp() throws {
    try folder.video("a.mp4", frames: 1)
    for name in ["3.mp4", "x-\(Self.start + 20_000).mp4", "other-7.mp4"] { try folder.copy("a.mp4", as: name) }
    try folder.write("a.json", SegmentFolder.event(9, atMs: 0))
    try folder.write(
      "all.jsonl",
      [
        SegmentFolder.event(3, atMs: 10_000), SegmentFolder.event(4, atMs: 20_000), SegmentFolder.event(7, atMs: 1),
        SegmentFolder.event(7, atMs: 2),
      ].joined(separator: "\n"))
    let (starts, result) = try imported(status: 0)
    #expect(starts == [0, 10_000, 20_000])
    #expect(result.refused?.map(\.source) == ["other-7.mp4"])
    #expect(result.refused?.first?.reason.hasPrefix("2 events fit to number 7") == true)
  }

  @Test func secondRunChangesNothingAndOtherContentIsRefused() throws {
    try folder.video("0.mp4")
    try folder.video("1.mp4")
    try folder.events([SegmentFolder.event(0, atMs: 0), SegmentFolder.event(1, atMs: 9_000)])
    #expect(try imported(status: 0).result.segments == 2)
    let before = try snapshot(of: scratch.path("imported/replay"))
    let again = try imported(status: 0).result
    #expect(again.duplicate == true)
    #expect(try snapshot(of: scratch.path("imported/replay")) == before)
    try folder.video("1.mp4", frames: 4)
    let other = try imported(status: 65).result
    #expect(other.refused?.map(\.source) == ["1.mp4"])
    #expect(try snapshot(of: scratch.path("imported/replay")) == before)
    // More segments continue the session.
    try FileManager.default.removeItem(atPath: folder.file("1.mp4"))
    try folder.video("\(Self.start + 30_000).mp4", frames: 1)
    #expect(try imported(status: 0).starts == [0, 9_000, 30_000])
  }

  @Test func killedRunIsContinuedAndLeavesNoHalfSegment() throws {
    try folder.video("0.mp4")
    for segment in 1..<12 { try folder.copy("0.mp4", as: "\(segment).mp4") }
    try folder.events((0..<12).map { SegmentFolder.event($0, atMs: Int64($0) * 5_000) })
    let arguments = ["encode", folder.path, "--output", scratch.path("imported")]
    try #require(try EncoderWorker.run("encode", folder.path, "-o", scratch.path("undisturbed")).status == 0)
    var random = Random(seed: 1)
    var (kills, round) = (0, 0)
    while kills < Extent.of(4, full: 40) && round < 200 {
      round += 1
      let run = try RunningWorker(arguments)
      usleep(UInt32(random.int(1...150)) * 1_000)
      run.signal(round % 3 == 2 ? SIGTERM : SIGKILL)
      if try run.wait() != 0 { kills += 1 }
      if round % 3 == 0 { try? FileManager.default.removeItem(atPath: scratch.path("imported")) }
    }
    #expect(kills > 0)
    try #require(try Tool.run(EncoderWorker.path, arguments).status == 0)
    let difference = try Tool.run(
      "diff", ["-r", "--exclude=.staging", "--exclude=.behind", scratch.path("undisturbed"), scratch.path("imported")])
    #expect(difference.text == "")
    #expect(try names(in: scratch.path("imported/.staging")).isEmpty)
    #expect(try EncoderWorker.run("verify", scratch.path("imported/replay")).status == 0)
  }

  @Test func stitchAndSheetSayWhatTheyTookAndLeaveNothingBehind() throws {
    try folder.video("0.mp4")
    try folder.write("1.mp4", "no video")
    try folder.events([SegmentFolder.event(0, atMs: 0), SegmentFolder.event(1, atMs: 9_000)])
    let temporary = try scratch.directory("temporary")
    let film = scratch.path("film.mp4")
    let result = try Tool.run(
      EncoderWorker.path, ["stitch", folder.path, "--to", film], environment: ["TMPDIR": temporary])
    #expect(result.status == 65)
    #expect(result.errors.contains("no session, but finished segments: took them as encode does"))
    #expect(result.errors.contains("refused 1.mp4"))
    #expect(try Probe(film).packets(of: 0).count == 5)
    // The program's own directory stays, without a file.
    for path in try FileManager.default.subpathsOfDirectory(atPath: temporary) {
      #expect(
        try URL(fileURLWithPath: "\(temporary)/\(path)").resourceValues(forKeys: [.isDirectoryKey]).isDirectory == true,
        "\(path)")
    }
    // A directory of other files is no directory of segments.
    let other = try EncoderWorker.run("stitch", Fixture("gap").path, "--to", film)
    #expect(other.status == 65 && other.errors.contains("no published segment"))
  }
}
