import Foundation
import TestSupport
import Testing

/// `pictures --at` writes the picture on screen at an instant. `FrameRequestTests` looks at each instant of all fixtures.
@Suite struct FrameTests {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private struct Result: Decodable {
    struct Bounds: Decodable, Equatable { let startMs, endMs: Int64 }

    let session: String
    let atMs: Int64
    let gap, bounds: Bounds?
    let file, source, status, segment: String?
    let timeMs, shownFromMs, shownUntilMs: Int64?
    let width, height, frame, bytes: Int?
  }

  private func frame(_ session: PublishedSession, at: String, to file: String = "picture.png") throws -> (Result, Int32)
  {
    let run = try EncoderWorker.run("pictures", session.path, "--at", at, "--to", scratch.path(file), "--json")
    return (try JSONDecoder().decode(Result.self, from: run.output), run.status)
  }

  @Test func frameTellsItsCaptureHoldAndSegment() throws {
    let session = try EncoderWorker.encode(Fixture("jittered"), into: scratch)
    let segment = session.manifests[1]
    let next = segment.frames[2].timeMs
    let (result, status) = try frame(session, at: "\(next - 1)")
    #expect(status == 0 && result.session == "jittered" && result.atMs == next - 1)
    #expect(result.timeMs == segment.frames[1].timeMs && result.shownFromMs == segment.frames[1].timeMs)
    #expect(result.shownUntilMs == next && result.frame == 1 && result.segment == segment.file)
    #expect(result.source == segment.frames[1].source && result.status == "captured")
    #expect(result.width == segment.width && result.height == segment.height)
    let file = try #require(result.file)
    #expect(try result.bytes == Data(contentsOf: URL(fileURLWithPath: file)).count)
    #expect(try ImageProbe(file).codec == "png")
    // The same instant, counted from the start and by the calendar.
    let seconds = next - 1 - session.index.startMs
    let bytes = try Data(contentsOf: URL(fileURLWithPath: file))
    for at in [String(format: "+%d.%03ds", seconds / 1_000, seconds % 1_000), "\(next - 1)"] {
      #expect(try frame(session, at: at).1 == 0)
      #expect(try Data(contentsOf: URL(fileURLWithPath: file)) == bytes)
    }
    #expect(try names(in: scratch.path) == ["output", "picture.png"])
  }

  /// The picture as captured: without the added column and row, and with the colours of the film.
  @Test(arguments: ["odd-size", "rotation", "colour-bars"])
  func pictureHasTheCapturedSizeAndColours(fixture: String) throws {
    let session = try EncoderWorker.encode(Fixture(fixture), into: scratch)
    let screen = try StitchedScreen(session, in: scratch)
    for (index, manifest) in session.manifests.enumerated() {
      for (file, codec) in [("picture.png", "png"), ("picture.jpg", "mjpeg"), ("PICTURE.JPEG", "mjpeg")] {
        #expect(try frame(session, at: "\(manifest.startMs)", to: file).1 == 0)
        let probe = try ImageProbe(scratch.path(file))
        #expect((probe.codec, probe.width, probe.height) == (codec, manifest.width, manifest.height))
        #expect(try probe.pixels().difference(to: screen.picture(index, 0)) < (codec == "png" ? 0.5 : 2), "\(file)")
      }
    }
  }

  @Test func sessionOfFullRangeKeepsItsColours() throws {
    let path = scratch.path("full-range")
    try FileManager.default.copyItem(atPath: Fixture("published/full-range").path, toPath: path)
    let session = try PublishedSession(path)
    let screen = try StitchedScreen(session, in: scratch)
    #expect(try frame(session, at: "+0s").1 == 0)
    #expect(try ImageProbe(scratch.path("picture.png")).pixels().difference(to: screen.picture(0, 0)) < 0.5)
  }

  @Test func gapEndsWithItsBounds() throws {
    let session = try EncoderWorker.encode(Fixture("gap"), into: scratch)
    for gap in session.index.gaps {
      for at in [gap.startMs, gap.endMs - 1] {
        let (result, status) = try frame(session, at: "\(at)")
        #expect(status == 65 && result.gap == .init(startMs: gap.startMs, endMs: gap.endMs))
      }
      let run = try EncoderWorker.run(
        "pictures", session.path, "--at", "\(gap.startMs)", "--to", scratch.path("gap.png"))
      #expect(run.status == 65 && run.text.isEmpty)
      #expect(run.errors.contains("\(gap.startMs)") && run.errors.contains("\(gap.endMs)"))
    }
    for at in [session.index.startMs - 1, session.index.endMs] {
      let (result, status) = try frame(session, at: "\(at)")
      #expect(status == 65 && result.gap == nil)
      #expect(result.bounds == .init(startMs: session.index.startMs, endMs: session.index.endMs))
    }
    #expect(try names(in: scratch.path) == ["output"])
  }

  @Test(arguments: [
    ["--at", "noon", "--to", "a.png"], ["--at", "+1.2345s", "--to", "a.png"], ["--at", "1", "--to", "a.gif"],
    ["--at", "1", "--to", "-"], ["--to", "a.png"], ["--at", "1"], ["--at", "1", "--to", "a.png", "--sheet"],
    ["--at", "1", "--to", "a.png", "--max", "3"], ["--at", "1", "--to", "a.png", "--from", "+1s"],
    ["--at", "1", "--to", "a.png", "--width", "300"],
  ])
  func wrongUsageEndsWith64(arguments: [String]) throws {
    let result = try Tool.run(EncoderWorker.path, ["pictures", scratch.path] + arguments, in: scratch.url)
    #expect(result.status == 64, "\(result.errors)")
  }

  @Test func targetInASessionIsRefusedAndAnExistingFileReplaced() throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let before = try snapshot(of: session.path)
    #expect(
      try EncoderWorker.run("pictures", session.path, "--at", "+1s", "--to", session.path + "/a.png").status == 64)
    #expect(try EncoderWorker.run("pictures", session.path, "--at", "+1s", "--to", "/nowhere/a.png").status == 64)
    try scratch.file("a.png", Array("old".utf8))
    #expect(try EncoderWorker.run("pictures", session.path, "--at", "+1s", "--to", scratch.path("a.png")).status == 0)
    #expect(try ImageProbe(scratch.path("a.png")).pixels().number == 1)
    #expect(try snapshot(of: session.path) == before)
  }

  @Test func damagedSegmentGivesNoFile() throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let video = URL(fileURLWithPath: session.video(session.manifests[1]))
    var bytes = try Data(contentsOf: video)
    bytes[bytes.count - 1_000] ^= 0x40
    try bytes.write(to: video)
    let at = "\(session.manifests[1].startMs + 1_200)"
    for mode in ["require", "off"] {
      let run = try EncoderWorker.run(
        "pictures", session.path, "--at", at, "--to", scratch.path("a.png"), "--sandbox", mode)
      #expect(run.status == 65 && run.errors.contains(session.manifests[1].file), "\(run.errors)")
    }
    #expect(try names(in: scratch.path) == ["output"])
    let nothing = try scratch.directory("output/empty")
    #expect(try EncoderWorker.run("pictures", nothing, "--at", "+1s", "--to", scratch.path("a.png")).status == 65)
    #expect(
      try EncoderWorker.run("pictures", nothing + "/no", "--at", "+1s", "--to", scratch.path("a.png")).status == 65)
  }

  /// A process opens one video, and the manifests of the segment and its neighbours.
  @Test(arguments: [0, 2, 4]) func oneVideoAndThreeManifestsAreReadAtMost(segment: Int) throws {
    let session = try EncoderWorker.encode(Fixture("irregular-3fps"), into: scratch)
    let manifests = session.manifests
    let manifest = manifests[min(segment, manifests.count - 1)]
    let log = scratch.path("log")
    try Tool.output(
      "strace",
      [
        "-f", "-E", "ASAN_OPTIONS=detect_leaks=0", "-e", "trace=openat,openat2", "-e", "signal=none", "-o", log,
        EncoderWorker.path, "pictures", session.path, "--at", "\(manifest.endMs - 1)", "--to", scratch.path("a.jpg"),
      ])
    let opened = try String(contentsOfFile: log, encoding: .utf8).matches(of: #/"[^"]*(segment-\d+\.(?:mp4|json))"/#)
      .map { String($0.1) }
    #expect(opened.filter { $0.hasSuffix(".mp4") } == [manifest.file])
    let own = manifests.firstIndex { $0.file == manifest.file } ?? 0
    let near = manifests[max(0, own - 1)...min(manifests.count - 1, own + 1)].map {
      $0.file.replacing(".mp4", with: ".json")
    }
    #expect(opened.filter { $0.hasSuffix(".json") }.sorted() == near)
  }
}
