import Foundation
import TestSupport
import Testing

/// `stitch --to FILE.gif` and `FILE.webp`, and posters. Pillow and ffprobe judge them; `AnimationBrowserTests` has browsers.
@Suite struct AnimatedFilmTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private static let formats = [("gif", Int64(10)), ("webp", 1)]

  private func film(_ session: PublishedSession, to file: String, _ options: String...) throws -> Tool.Result {
    try film(session, to: file, options)
  }

  private func film(_ session: PublishedSession, to file: String, _ options: [String]) throws -> Tool.Result {
    let result = try Tool.run(
      EncoderWorker.path, ["stitch", session.path, "--to", scratch.path(file)] + options, in: scratch.url)
    if result.status != 0 { #expect(try !names(in: scratch.path).contains(file)) }
    return result
  }

  private struct Facts: Decodable {
    let durationMs, fromMs, toMs: Int64
    let pictures, merged, width, height: Int?
  }

  private func rounded(_ ms: Int64, to unit: Int64) -> Int64 { (ms + unit / 2) / unit * unit }

  /// When each picture comes on screen in a film with held gaps, in milliseconds from its start, and the film's end.
  private func bounds(_ session: PublishedSession) -> [Int64] {
    session.captured.map { $0.timeMs - session.index.startMs } + [session.index.durationMs]
  }

  @Test(arguments: ["jittered", "irregular-3fps", "gap", "odd-size", "single-frame", "on-change"])
  func eachPictureIsShownFromItsCaptureOn(fixture: String) throws {
    let session = try EncoderWorker.encode(Fixture(fixture), into: scratch)
    let screen = try StitchedScreen(session, in: scratch)
    for (ending, unit) in Self.formats {
      let result = try film(session, to: "film.\(ending)")
      #expect(result.status == 0, "\(result.errors)")
      let shown = try ShownAnimation(scratch.path("film.\(ending)"))
      #expect(shown.format == ending.uppercased() && shown.isEndless)
      #expect((shown.width, shown.height) == (session.manifests[0].width, session.manifests[0].height))
      #expect(shown.bounds == bounds(session).map { rounded($0, to: unit) }, "\(ending)")
      for (number, picture) in shown.pictures.enumerated() {
        guard
          case .picture(_, let segment, let sample) = screen.content(at: session.captured[number].timeMs)
        else {
          Issue.record("nothing is on screen")
          continue
        }
        #expect(picture.number == number)
        let difference = picture.difference(to: screen.picture(segment, sample))
        #expect(difference < 2.5, "\(ending) \(number): \(difference)")
      }
      let ms = session.index.durationMs
      let said = "\(ms / 1_000).\(ms % 1_000 / 100) s, \(shown.pictures.count) picture"
      #expect(result.text.contains(said) && result.text.hasPrefix(scratch.path("film.\(ending): ")), "\(result.text)")
    }
  }

  /// ffprobe shows the pictures of a GIF, but not those of an animated WebP.
  @Test func ffprobeCountsThePicturesOfAGIF() throws {
    let session = try EncoderWorker.encode(Fixture("jittered"), into: scratch)
    #expect(try film(session, to: "film.gif").status == 0)
    let probe = try Probe(scratch.path("film.gif"))
    #expect(probe.streams[0].codecName == "gif" && probe.packets.count == session.captured.count)
    #expect(probe.packets.map(\.pts) == bounds(session).dropLast().map { ($0 + 5) / 10 })
  }

  @Test func picturesOfAllSizesAreInTheMiddle() throws {
    let session = try EncoderWorker.encode(Fixture("rotation"), into: scratch)
    for (ending, _) in Self.formats {
      #expect(try film(session, to: "film.\(ending)").status == 0)
      let shown = try ShownAnimation(scratch.path("film.\(ending)"))
      #expect((shown.width, shown.height) == (320, 320))
      let areWide = session.manifests.flatMap { Array(repeating: $0.width > $0.height, count: $0.frames.count) }
      for (picture, isWide) in zip(shown.pictures, areWide) {
        for (x, y) in isWide ? [(160, 20), (160, 300)] : [(20, 160), (300, 160)] {
          #expect(picture[x, y].allSatisfy { $0 < 12 }, "\(ending)")
        }
      }
    }
  }

  @Test(arguments: ["gif", "webp"]) func picturesAreScaledToTheMaximum(ending: String) throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    #expect(try film(session, to: "film.\(ending)", "--max-side", "96").status == 0)
    let shown = try ShownAnimation(scratch.path("film.\(ending)"))
    #expect((shown.width, shown.height) == (54, 96))
    #expect(shown.pictures.map(\.number) == Array(0..<12))
    // Of larger pictures 480 is the maximum.
    let large = try scratch.directory("large")
    for number in 0..<2 {
      try Tool.output(
        "ffmpeg",
        [
          "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=1000x600:rate=1", "-vf", "trim=start_frame=\(number)",
          "-frames:v", "1", "\(large)/\(1_767_859_512_000 + 1_000 * number).png",
        ])
    }
    let encoded = try EncoderWorker.encode(Fixture(file: large), into: scratch)
    #expect(try film(encoded, to: "large.\(ending)").status == 0)
    let small = try ShownAnimation(scratch.path("large.\(ending)"))
    #expect((small.width, small.height) == (480, 288) && small.pictures.count == 2)
  }

  /// A screen that stays the same for minutes, as a recorder at an interval captures it.
  @Test(arguments: ["gif", "webp"]) func equalPicturesAreOne(ending: String) throws {
    let idle = try scratch.directory("idle")
    for number in 0..<30 {
      let source = number < 11 ? "0003.jpg" : number < 12 ? "0004.jpg" : "0005.jpg"
      try scratch.file(
        "idle/\(1_767_859_512_000 + 1_000 * number).jpg", Fixture("exact-1fps").bytes(source))
    }
    let session = try EncoderWorker.encode(Fixture(file: idle), into: scratch)
    #expect(session.manifests.count == 6)
    let result = try film(session, to: "film.\(ending)", "--json")
    #expect(result.status == 0, "\(result.errors)")
    let shown = try ShownAnimation(scratch.path("film.\(ending)"))
    var holdsMs: [Int: Int64] = [:]
    for (picture, holdMs) in zip(shown.pictures, shown.holdsMs) { holdsMs[picture.number, default: 0] += holdMs }
    #expect(holdsMs == [3: 11_000, 4: 1_000, 5: 18_000])
    // A segment begins with other small errors, once after each change at most.
    let facts = try result.json(as: Facts.self)
    #expect(facts.pictures == shown.pictures.count && (3...5).contains(shown.pictures.count))
    #expect(facts.merged == 30 - shown.pictures.count)
  }

  /// Each minute's picture opens a segment. No change is lost for looking like an error of the coder.
  @Test(arguments: ["gif", "webp"], [[], ["--max-side", "72"]])
  func eachPictureOfAMinuteIsShown(ending: String, options: [String]) throws {
    func picture(_ shade: (_ x: Int, _ y: Int) -> Int) -> [UInt8] {
      let samples = (0..<200).flatMap { y in (0..<200).map { shade($0, y) } }
      return PNGImage.file(width: 200, height: 200, depth: 8, kind: 0, samples: samples)
    }
    func page(hasCaret: Bool) -> [UInt8] {
      picture { x, y in
        x / 10 % 2 == 0 && y / 20 % 2 == 0 || hasCaret && x == 112 && (120..<140).contains(y) ? 0 : 240
      }
    }
    // A scene that brightens, then a caret of a pixel's width beside black text.
    let scene = (0..<5).map { minute in picture { x, y in ((x / 8 + y / 8) % 2 == 0 ? 200 : 40) + 10 * minute } }
    let all = scene + [page(hasCaret: false), page(hasCaret: true), page(hasCaret: false)]
    let frames = try scratch.directory("minutes")
    for (minute, file) in all.enumerated() {
      try scratch.file("minutes/\(1_767_859_512_000 + 60_000 * minute).png", file)
    }
    let session = try EncoderWorker.encode(
      Fixture(file: frames), into: scratch, "--capture", "onChange", "--interval", "60000")
    let result = try film(session, to: "film.\(ending)", ["--json"] + options)
    #expect(result.status == 0, "\(result.errors)")
    #expect(try result.json(as: Facts.self).merged == nil)
    #expect(try ShownAnimation(scratch.path("film.\(ending)")).holdsMs == Array(repeating: 60_000, count: 8))
  }

  /// A GIF's hold has 16 bits, in hundredths of a second.
  @Test(arguments: ["gif", "webp"]) func longHoldBecomesSeveral(ending: String) throws {
    let frames = try scratch.directory("long")
    for (number, second) in [0, 2_000, 2_001].enumerated() {
      try scratch.file(
        "long/\(1_767_859_512_000 + 1_000 * second).jpg", Fixture("exact-1fps").bytes("000\(number).jpg"))
    }
    let session = try EncoderWorker.encode(
      Fixture(file: frames), into: scratch, "--capture", "onChange", "--interval", "1000")
    #expect(try film(session, to: "film.\(ending)").status == 0)
    let shown = try ShownAnimation(scratch.path("film.\(ending)"))
    let last = session.index.durationMs - 2_001_000
    let holds: [Int64] = ending == "gif" ? [655_350, 655_350, 655_350, 33_950] : [2_000_000]
    #expect(shown.holdsMs == holds + [1_000, last])
    #expect(shown.pictures.map(\.number) == Array(repeating: 0, count: holds.count) + [1, 2])
    #expect(try film(session, to: "fast.\(ending)", "--speed", "100").status == 0)
    #expect(try ShownAnimation(scratch.path("fast.\(ending)")).holdsMs.count == 3)
  }

  @Test func gapsAndClipsAndSpeedsAreThoseOfFilms() throws {
    let session = try EncoderWorker.encode(Fixture("gap"), into: scratch)
    for (ending, unit) in Self.formats {
      for options in [
        ["--gaps", "cut"], ["--from", "+1.5s", "--to-time", "+4.25s"], ["--speed", "3"], ["--speed", "0.7"],
      ] {
        let mp4 = try Tool.run(
          EncoderWorker.path, ["stitch", session.path, "--to", scratch.path("film.mp4"), "--json"] + options)
        let file = scratch.path("film.\(ending)")
        let drawn = try Tool.run(EncoderWorker.path, ["stitch", session.path, "--to", file, "--json"] + options)
        #expect(mp4.status == 0 && drawn.status == 0, "\(drawn.errors)")
        let (film, own) = try (mp4.json(as: Facts.self), drawn.json(as: Facts.self))
        #expect((own.durationMs, own.fromMs, own.toMs) == (film.durationMs, film.fromMs, film.toMs))
        let shown = try ShownAnimation(file)
        // The film's own duration: that of the JSON is rounded down.
        let ticks = try #require(try Probe(scratch.path("film.mp4")).streams[0].durationTs)
        #expect(shown.bounds.last == rounded(ticks * 100, to: unit * 9_000) / 9_000, "\(ending) \(options)")
        #expect(own.pictures == shown.pictures.count && own.width == 180 && own.height == 320)
      }
    }
  }

  /// Browsers show pictures of 10 ms or less for 100 ms.
  @Test(arguments: [("gif", Int64(20)), ("webp", 11)])
  func pictureIsHeldForAsLongAsBrowsersNeed(ending: String, leastMs: Int64) throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let fast = try film(session, to: "film.\(ending)", "--speed", "100")
    #expect(fast.status == 64 && fast.errors.contains("faster than browsers show"), "\(fast.errors)")
    // The advice works.
    let advised = try #require(fast.errors.firstMatch(of: #/--speed ([\d.]+) or less/#)?.1)
    #expect(try film(session, to: "film.\(ending)", "--speed", String(advised)).status == 0)
    let shown = try ShownAnimation(scratch.path("film.\(ending)"))
    #expect(shown.pictures.map(\.number) == Array(0..<12) && shown.holdsMs.allSatisfy { $0 >= leastMs })
  }

  @Test func refusalsNameAWayOut() throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    for (file, options, words) in [
      ("film.mp4", ["--max-side", "100"], ["reencode", ".gif"]), ("hls", ["--format", "hls", "--max-side", "100"], []),
      ("film.gif", ["--max-side", "15"], ["16", "2048"]), ("film.webp", ["--max-side", "2049"], ["2048"]),
      ("film.apng", [], ["GIF", ".mp4"]), ("film.avi", [], [".mp4"]),
    ] {
      let result = try Tool.run(
        EncoderWorker.path, ["stitch", session.path, "--to", scratch.path(file)] + options)
      #expect(result.status == 64 && words.allSatisfy(result.errors.contains), "\(file): \(result.errors)")
    }
    #expect(try names(in: scratch.path) == ["output"])
  }

  @Test func moreThanTheMaximumOfPicturesIsRefused() throws {
    let path = try LongSession.make(of: 4_001, in: scratch, output: "long")
    let file = scratch.path("film.gif")
    let refused = try EncoderWorker.run("stitch", path, "--to", file)
    #expect(refused.status == 64 && refused.errors.contains("20005 pictures"), "\(refused.errors)")
    #expect(refused.errors.contains("--from and --to-time") && refused.errors.contains("MP4"))
    let part = try EncoderWorker.run("stitch", path, "--to", file, "--from", "+10s", "--to-time", "+20s")
    #expect(part.status == 0, "\(part.errors)")
    #expect(try ShownAnimation(file).bounds.last == 10_000)
    #expect(try names(in: scratch.path) == ["film.gif", "long", "output"])
  }

  /// The picture with which the film begins.
  @Test(arguments: ["png", "jpg", "jpeg"]) func posterIsThePictureOnScreen(ending: String) throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let file = scratch.path("poster.\(ending)")
    for (options, number) in [([], 0), (["--from", "+4.2s"], 4), (["--from", "+11.999s", "--to-time", "+12s"], 11)] {
      let result = try Tool.run(EncoderWorker.path, ["stitch", session.path, "--to", file] + options)
      #expect(result.status == 0 && result.text.contains("180×320 pixels"), "\(result.errors)")
      let probe = try ImageProbe(file)
      #expect(probe.codec == (ending == "png" ? "png" : "mjpeg") && (probe.width, probe.height) == (180, 320))
      #expect(try probe.pixels().number == number)
      let frame = scratch.path("frame.\(ending)")
      let at = options.isEmpty ? "+0s" : options[1]
      #expect(try EncoderWorker.run("pictures", session.path, "--at", at, "--to", frame).status == 0)
      // The poster has a mark beside its pixels.
      #expect(try probe.pixels().difference(to: ImageProbe(frame).pixels()) == 0)
    }
    #expect(try EncoderWorker.run("stitch", session.path, "--to", file, "--max-side", "64").status == 0)
    #expect(try (ImageProbe(file).width, ImageProbe(file).height) == (36, 64))
  }

  @Test(arguments: ["gif", "webp", "png"]) func damagedSegmentMakesNoFile(ending: String) throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let video = URL(fileURLWithPath: session.video(session.manifests[0]))
    var bytes = try Data(contentsOf: video)
    bytes[bytes.count - 1_000] ^= 0x40
    try bytes.write(to: video)
    for mode in ["require", "off"] {
      let result = try film(session, to: "film.\(ending)", "--sandbox", mode)
      #expect(result.status == 65 && result.errors.contains(session.manifests[0].file), "\(result.errors)")
    }
  }

  /// The sandbox changes nothing.
  @Test func filmIsTheSameWithAndWithoutTheSandbox() throws {
    let session = try EncoderWorker.encode(Fixture("irregular-3fps"), into: scratch)
    for ending in ["gif", "webp", "png", "jpg"] {
      #expect(try film(session, to: "one.\(ending)", "--sandbox", "require").status == 0)
      #expect(try film(session, to: "two.\(ending)", "--sandbox", "off").status == 0)
      let (one, two) = (scratch.path("one.\(ending)"), scratch.path("two.\(ending)"))
      #expect(FileManager.default.contentsEqual(atPath: one, andPath: two), "\(ending)")
    }
  }
}
