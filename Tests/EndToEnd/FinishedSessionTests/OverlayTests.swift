import Encoding
import Foundation
import FrameBatches
import JSON
import TestSupport
import Testing

/// `reencode --overlay`: texts in the pictures, read back from what stock ffmpeg decodes.
@Suite struct OverlayTests {
  private static let startMs: Int64 = 1_767_859_512_340
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private func reencode(_ source: String, to output: String = "again", _ options: String...) throws -> Tool.Result {
    try Tool.run(
      EncoderWorker.path, ["reencode", source, "--output", scratch.path(output), "--quality", "small"] + options)
  }

  /// Draws an overlay and reads the session.
  private func drawn(_ session: PublishedSession, to output: String = "again", _ options: String...) throws
    -> PublishedSession
  {
    let result = try Tool.run(
      EncoderWorker.path,
      ["reencode", session.path, "--output", scratch.path(output), "--quality", "small"] + options)
    try #require(result.status == 0, "\(result.errors)")
    let name = URL(fileURLWithPath: session.path).lastPathComponent
    return try PublishedSession(scratch.path("\(output)/\(name)"))
  }

  /// Encodes a folder of pictures, one a second, of which each is another picture or all are the same.
  private func session(
    _ name: String, size: String, frames: Int = 6, isStill: Bool = false, _ members: String = ""
  ) throws -> PublishedSession {
    _ = try scratch.directory(name)
    try Tool.output(
      "ffmpeg",
      [
        "-v", "error", "-f", "lavfi", "-i", "testsrc2=s=\(size):r=1", "-frames:v", "\(frames)", "-start_number", "0",
        scratch.path(name + "/%d.png"),
      ])
    let list = (0..<frames).map { index in
      #"{"file":"\#(index).png","timeMs":\#(Self.startMs + 1_000 * Int64(index))}"#
    }
    if isStill {
      let first = try Data(contentsOf: URL(fileURLWithPath: scratch.path(name + "/0.png")))
      for index in 1..<frames { try scratch.file("\(name)/\(index).png", Array(first)) }
    }
    let json = #"{"version":1,"session":"\#(name)","frames":[\#(list.joined(separator: ","))]\#(members)}"#
    try scratch.file("\(name)/batch.json", Array(json.utf8))
    return try EncoderWorker.encode(Fixture(file: scratch.path(name)), into: scratch)
  }

  /// Returns the UTC clock of a capture.
  private static func clock(_ timeMs: Int64) -> String {
    let text = ISO8601DateFormatter().string(from: Date(timeIntervalSince1970: Double(timeMs / 1_000)))
    return text.replacing("T", with: " ").replacing("Z", with: " Z")
  }

  /// Returns the index of the frame that each sample of a segment shows.
  private static func framesOfSamples(_ session: PublishedSession, _ manifest: PublishedSession.Manifest) throws
    -> [Int]
  {
    let starts = manifest.offsetsMs.map { 90 * $0 }
    return try Probe(session.video(manifest)).packets(of: 0).map(\.pts).sorted().map { pts in
      (starts.lastIndex { $0 <= pts }) ?? 0
    }
  }

  /// Reads a text at the bottom left, or in a row above, of every sample of a session, and compares it with the one of its frame.
  ///
  /// - Parameters:
  ///   - row: counted from the bottom.
  ///   - text: returns the expected text.
  private func expect(
    _ session: PublishedSession, row: Int = 0, _ text: (PublishedSession.Manifest.Frame) -> String?
  ) throws {
    let pictures = try session.pictures()
    for (index, manifest) in session.manifests.enumerated() {
      // The layout as docs/output.md describes it, without the code that draws it.
      let scale = max(1, (12 * manifest.width + 2_624) / 2_625)
      let height = (11 * scale + 1) / 2 * 2
      let top = (manifest.height - 2 * scale) / 2 * 2 - (row + 1) * height
      let reader = OverlayReader(left: Double(3 * scale), top: Double(top + scale), scale: Double(scale))
      let frames = try Self.framesOfSamples(session, manifest)
      try #require(frames.count == pictures[index].count)
      for (sample, picture) in pictures[index].enumerated() {
        guard let wanted = text(manifest.frames[frames[sample]]) else { continue }
        #expect(reader.text(of: wanted.count, in: picture) == wanted, "\(manifest.file), sample \(sample)")
      }
    }
  }

  @Test(arguments: Fixture.sample + Fixture.corpus)
  func everyPictureShowsTheSecondOfItsCapture(fixture: Fixture) throws {
    let session = try EncoderWorker.encode(fixture, into: scratch)
    let again = try drawn(session, "--overlay", "clock")
    #expect(try EncoderWorker.run("verify", again.path).status == 0)
    try expect(again) { Self.clock($0.timeMs) }
    for (old, new) in zip(session.manifests, again.manifests) {
      #expect((old.frames, old.startMs, old.endMs) == (new.frames, new.startMs, new.endMs))
      #expect((old.width, old.height, old.samples) == (new.width, new.height, new.samples))
    }
  }

  @Test(arguments: ["750x1334", "375x667", "1280x720", "219x300"])
  func clockCanBeReadAt375Pixels(size: String) throws {
    let session = try drawn(session("walk", size: size, frames: 3), "--overlay", "clock")
    let manifest = session.manifests[0]
    let isNarrow = manifest.width == 219
    let shown = 375
    let height = (manifest.height * shown + manifest.width / 2) / manifest.width
    let pictures = try Pixels.decode(
      session.video(manifest), width: shown, height: height,
      options: [
        "-vf", "format=rgb24,crop=\(manifest.width):\(manifest.height):0:0,scale=\(shown):\(height):flags=area",
      ])
    let frames = try Self.framesOfSamples(session, manifest)
    for (sample, picture) in pictures.enumerated() {
      let whole = Self.clock(manifest.frames[frames[sample]].timeMs)
      let text = isNarrow ? String(whole.dropFirst(11)) : whole
      let layout = OverlayLayout(
        OverlayTexts(clock: [text]), in: PixelSize(width: manifest.width, height: manifest.height))
      let box = try #require(layout.boxes.first)
      #expect(OverlayReader(box, in: manifest.width, shown: shown).text(of: text.count, in: picture) == text)
    }
  }

  @Test func oneStillPictureIsEncodedOnceASecond() throws {
    let still = try session("still", size: "376x668", frames: 12, isStill: true)
    let again = try drawn(still, "--overlay", "clock")
    try expect(again) { Self.clock($0.timeMs) }
    #expect(again.manifests.map(\.samples) == still.manifests.map(\.samples))
  }

  @Test func heldPictureShowsItsCaptureInLaterSegments() throws {
    let session = try EncoderWorker.encode(Fixture("on-change"), into: scratch)
    #expect(session.manifests.contains { $0.frames[0].status == "continued" })
    try expect(drawn(session, "--overlay", "clock")) { Self.clock($0.timeMs) }
  }

  /// Outside of the boxes pictures are as without an overlay, masks too.
  @Test func masksStayMasked() throws {
    let session = try EncoderWorker.encode(Fixture("masks"), into: scratch)
    let plain = try drawn(session, to: "plain").pictures()
    let marked = try drawn(session, to: "marked", "--overlay", "clock,name")
    try expect(marked) { Self.clock($0.timeMs) }
    let texts = OverlayTexts(clock: [Self.clock(Self.startMs)], name: "masks")
    for (index, manifest) in marked.manifests.enumerated() {
      let size = PixelSize(width: manifest.width, height: manifest.height)
      let upper = OverlayLayout(texts, in: size).boxes.map(\.area.y).min() ?? 0
      // Blocks of 16 pixels above the boxes are coded on their own, but for what the filter at their edges changes.
      let rows = (upper - 16) / 16 * 16
      for (one, two) in zip(plain[index], try marked.pictures()[index]) {
        func part(_ picture: Pixels) -> Pixels {
          Pixels(width: picture.width, height: rows, bytes: Array(picture.bytes[..<(3 * picture.width * rows)]))
        }
        #expect(part(one).difference(to: part(two)) < 1)
      }
    }
  }

  @Test func oddSizesAndSmallerPicturesHaveSharpTexts() throws {
    let odd = try session("odd", size: "375x667", frames: 3)
    try expect(drawn(odd, to: "one", "--overlay", "clock")) { Self.clock($0.timeMs) }
    let large = try session("large", size: "750x1334", frames: 3)
    let small = try drawn(large, to: "two", "--overlay", "clock", "--max-side", "667")
    #expect(small.manifests.map(\.width) == [375])
    try expect(small) { Self.clock($0.timeMs) }
  }

  @Test func nameAndEventsAreAboveTheClock() throws {
    let events = [(200, "down", 10), (300, "move", 20), (400, "up", 30), (2_100, "down", 40)].map { time, type, x in
      #"{"timeMs":\#(Self.startMs + Int64(time)),"type":"\#(type)","x":\#(x),"y":7}"#
    }
    let touched = try session(
      "touched", size: "375x667", frames: 3, #","events":[\#(events.joined(separator: ","))]"#)
    let again = try drawn(touched, "--overlay", "name", "--overlay", "events,clock")
    try expect(again) { Self.clock($0.timeMs) }
    // The name has room beside the clock.
    try expect(again, row: 1) { frame in
      switch frame.timeMs - Self.startMs {
      case 0: "down 10,7; 1 move; up 30,7"
      case 2_000: "down 40,7"
      default: nil
      }
    }
    let manifest = try SegmentManifestJSON(again.path + "/segment-\(Self.startMs).json")
    let before = try SegmentManifestJSON(touched.path + "/segment-\(Self.startMs).json")
    #expect(
      manifest["encoder"]?.object?["overlay"]?.line == #"{"parts":["clock","name","events"],"timeZone":"UTC"}"#)
    #expect(manifest["touches"] == before["touches"])
  }

  /// A caption is drawn while it is shown: a step until the next one, also in the next segment.
  @Test func captionIsAboveTheClock() throws {
    let steps = [(0, "Open"), (1_200, "Add to cart"), (4_900, "Pay")].map { time, text in
      #"{"timeMs":\#(Self.startMs + Int64(time)),"kind":"step","text":"\#(text)"}"#
    }
    let labelled = try session(
      "labelled", size: "375x667", frames: 12, #","labels":[\#(steps.joined(separator: ","))]"#)
    let again = try drawn(labelled, "--overlay", "clock,caption")
    try expect(again, row: 1) { frame in
      switch frame.timeMs - Self.startMs {
      case 0: "Open"
      case 1_000: "Open; Add to cart"
      case 2_000, 3_000: "Add to cart"
      case 4_000: "Add to cart; Pay"
      case 5_000, 6_000, 7_000, 8_000, 9_000: "Pay"
      default: nil
      }
    }
    let manifest = try SegmentManifestJSON(again.path + "/segment-\(Self.startMs).json")
    #expect(
      manifest["encoder"]?.object?["overlay"]?.line == #"{"parts":["clock","caption"],"timeZone":"UTC"}"#)
  }

  /// The batch states the zone, or an option does.
  @Test func clockIsInTheSessionsZone() throws {
    let berlin = try session("berlin", size: "375x667", frames: 2, #","timeZone":"Europe/Berlin""#)
    let stated = try SegmentManifestJSON(berlin.path + "/segment-\(Self.startMs).json")
    #expect(stated["timeZone"]?.string == "Europe/Berlin")
    try expect(drawn(berlin, to: "one", "--overlay", "clock")) {
      "2026-01-08 09:05:1\(($0.timeMs - Self.startMs) / 1_000 + 2) +01:00"
    }
    try expect(drawn(berlin, to: "two", "--overlay", "clock", "--overlay-time-zone", "-03:30")) {
      "2026-01-08 04:35:1\(($0.timeMs - Self.startMs) / 1_000 + 2) -03:30"
    }
    #expect(try reencode(berlin.path, to: "no", "--overlay", "clock", "--overlay-time-zone", "Nowhere").status == 64)
    // A zone that an option states for names goes the same way; a plain session has none.
    let plain = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    #expect(try SegmentManifestJSON(plain.path + "/segment-\(Self.startMs).json")["timeZone"] == nil)
    let tokyo = try ScratchDirectory()
    let zoned = try EncoderWorker.encode(Fixture("jittered"), into: tokyo, "--time-zone", "Asia/Tokyo")
    try expect(drawn(zoned, to: "three", "--overlay", "clock")) {
      let text = Self.clock($0.timeMs + 9 * 3_600_000)
      return text.dropLast(1) + "+09:00"
    }
  }

  @Test func overlayIsNotDrawnTwice() throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let marked = try drawn(session, "--overlay", "clock")
    let again = try reencode(session.path, to: "again", "--overlay", "clock", "--json")
    #expect(again.text.contains(#""encoded":0,"#) && again.text.contains(#""warnings":[]"#))
    for other in [["--overlay", "clock,name"], ["--overlay", "clock", "--overlay-time-zone", "+01:00"], []] {
      let result = try Tool.run(
        EncoderWorker.path,
        ["reencode", session.path, "--output", scratch.path("again"), "--quality", "small"] + other)
      #expect(result.status == 65 && result.errors.contains("with other settings"), "\(other): \(result.errors)")
    }
    let twice = try reencode(marked.path, to: "twice", "--overlay", "name")
    #expect(twice.status == 65 && twice.errors.contains("its pictures have an overlay already"))
    // Without the option the pictures keep theirs, and the manifest tells of it.
    let kept = try drawn(marked, to: "kept", "--max-side", "200")
    let manifest = try SegmentManifestJSON(kept.path + "/segment-\(Self.startMs).json")
    #expect(manifest["encoder"]?.object?["overlay"]?.line == #"{"parts":["clock"],"timeZone":"UTC"}"#)
    #expect(try reencode(kept.path, to: "more", "--overlay", "clock").status == 65)
  }

  @Test func picturesWithoutRoomAreNamedAndStayAsTheyAre() throws {
    let tiny = try session("tiny", size: "16x16", frames: 3)
    let result = try reencode(tiny.path, to: "again", "--overlay", "clock,name", "--json")
    try #require(result.status == 0, "\(result.errors)")
    let sentence = "pictures of 16×16 pixels have no room for: clock, name (1 segment)"
    #expect(result.errors.contains(sentence) && result.text.contains(sentence))
    let again = try PublishedSession(scratch.path("again/tiny"))
    let manifest = try SegmentManifestJSON(again.path + "/segment-\(Self.startMs).json")
    #expect(manifest["encoder"]?.object?["overlay"] == nil)
    let plain = try drawn(tiny, to: "plain")
    #expect(plain.manifests.map(\.sha256) == again.manifests.map(\.sha256))
  }

  @Test func filmHasTheClockOfItsCaptures() throws {
    let session = try EncoderWorker.encode(Fixture("irregular-3fps"), into: scratch)
    let film = scratch.path("film.mp4")
    try #require(try EncoderWorker.run("stitch", session.path, "--to", film).status == 0)
    let result = try reencode(film, to: "again", "--overlay", "clock")
    try #require(result.status == 0, "\(result.errors)")
    try expect(PublishedSession(scratch.path("again/film"))) { Self.clock($0.timeMs) }
    let events = try reencode(film, to: "events", "--overlay", "clock,events")
    #expect(events.status == 64 && events.errors.contains("--overlay events and caption are for a published session"))
    let wrong = try reencode(film, to: "wrong", "--overlay", "clock,clok")
    #expect(wrong.status == 64 && wrong.errors.contains("'clok' is none of clock, name, events, caption"))
  }
}
