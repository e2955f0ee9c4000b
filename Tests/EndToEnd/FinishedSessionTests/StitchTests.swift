import Foundation
import JSON
import TestSupport
import Testing

/// `stitch` writes a session as one film, with each frame at its capture time.
@Suite struct StitchTests {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  @Test(arguments: Fixture.all + Fixture.corpus)
  func everyFrameIsAtItsCapture(fixture: Fixture) throws {
    let session = try EncoderWorker.encode(fixture, into: scratch)
    let film = scratch.path("film.mp4")
    let result = try EncoderWorker.run("stitch", session.path, "--to", film)
    #expect(result.status == 0, "\(result.errors)")
    #expect(try Conformance.faults(ofMovie: film) == [])
    for manifest in session.manifests { #expect(try Conformance.faults(ofMovie: session.video(manifest)) == []) }
    let probe = try Probe(film)
    let start = session.index.startMs
    let video = probe.packets(of: 0)
    #expect(video.map(\.pts) == video.map(\.dts))
    #expect(zip(video, video.dropFirst()).allSatisfy { $0.pts + $0.duration == $1.pts })
    #expect(probe.streams.allSatisfy { $0.durationTs == session.index.durationMs * 90 })
    let instants = Set(video.map(\.pts))
    for frame in session.captured { #expect(instants.contains((frame.timeMs - start) * 90)) }
    // The film has key frames at the starts of segments only.
    let keys = video.filter(\.isKey).map(\.pts)
    #expect(keys.first == 0 && Set(keys).isSubset(of: session.manifests.map { ($0.startMs - start) * 90 }))

    let texts = try Probe.timingTexts(film)
    #expect(texts == session.manifests.flatMap { $0.frames.map { TimingEntry($0) } })
    let shown = zip(
      session.manifests.flatMap { m in zip(m.frames, m.offsetsMs).map { ($0, m.startMs + $1 - start) } }, texts)
    let timing = probe.packets(of: 1).filter { $0.size != "2" }
    for ((frame, atMs), packet) in zip(shown.map(\.0), timing) {
      #expect(packet.pts == atMs * 90)
      #expect(packet.duration == frame.holdMs * 90)
    }
    let decoding = try Tool.run(
      "ffmpeg", ["-v", "error", "-i", film, "-map", "0:v", "-enc_time_base", "1:90000", "-f", "null", "-"])
    #expect(decoding.errors == "")
    #expect(try names(in: scratch.path) == ["film.mp4", "output"])
  }

  @Test func cutGapsShiftLaterFrames() throws {
    let session = try EncoderWorker.encode(Fixture("gap"), into: scratch)
    let film = scratch.path("film.mp4")
    #expect(try EncoderWorker.run("stitch", session.path, "--to", film, "--gaps", "cut").status == 0)
    let instants = Set(try Probe(film).packets(of: 0).map(\.pts))
    let gaps = session.index.gaps
    for frame in session.captured {
      let before = gaps.filter { $0.endMs <= frame.timeMs }.reduce(0) { $0 + $1.endMs - $1.startMs }
      #expect(instants.contains((frame.timeMs - session.index.startMs - before) * 90))
    }
    #expect(try Probe(film).streams[0].durationTs == session.manifests.reduce(0) { $0 + $1.durationMs } * 90)
    let chapters = try Tool.output("ffprobe", ["-v", "error", "-show_chapters", "-of", "json", film])
    #expect(String(decoding: chapters, as: UTF8.self).contains("after a gap of 7 s"))
  }

  /// In a film whose size changes, each picture equals its capture.
  @Test func filmWithAChangeOfSizeDecodes() throws {
    let session = try EncoderWorker.encode(Fixture("rotation"), into: scratch)
    let film = scratch.path("film.mp4")
    #expect(try EncoderWorker.run("stitch", session.path, "--to", film).status == 0)
    // A sample description for each size, and parameter sets in band: Chromium and Firefox ignore a second description.
    let entries = try MP4Boxes.read(film).first { $0.type == "moov" }?["trak"]?["mdia"]?["minf"]?["stbl"]?["stsd"]?.body
    let descriptions = MP4Boxes.read(Data(try #require(entries).dropFirst(8)))
    #expect(descriptions.map(\.type) == ["avc3", "avc3"])
    #expect(descriptions.map { $0.body.integer(at: 24, bytes: 2) } == [180, 320])
    // The checker finds in-band parameter sets under avc1.
    let lying = try Data(contentsOf: URL(fileURLWithPath: film)).replacing("avc3".utf8, with: "avc1".utf8)
    try lying.write(to: URL(fileURLWithPath: scratch.path("lying.mp4")))
    #expect(
      try Set(Conformance.faults(ofMovie: scratch.path("lying.mp4"))) == [
        "14496-15, 5.4.2: parameter sets in band under avc1"
      ])
    // Both sizes have the same number of pixels.
    let pictures = try Pixels.decode(film, width: 180, height: 320, options: ["-noautoscale"])
    // Eight captures of a second, and the repeats of each.
    #expect(pictures.count == 64)
    for (index, picture) in pictures.enumerated() {
      let number = index / 8
      let (width, height) = (3..<6).contains(number) ? (320, 180) : (180, 320)
      #expect(Pixels(width: width, height: height, bytes: picture.bytes).number == number)
    }
  }

  @Test func aDamagedSessionIsNotStitched() throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let film = scratch.path("film.mp4")
    let file = session.video(session.manifests[1])
    var bytes = try Data(contentsOf: URL(fileURLWithPath: file))
    bytes[bytes.count - 10] ^= 1
    try bytes.write(to: URL(fileURLWithPath: file))
    let result = try EncoderWorker.run("stitch", session.path, "--to", film)
    #expect(result.status == 65)
    #expect(result.errors.contains("\(session.manifests[1].file): not the file its manifest describes"))
    try FileManager.default.removeItem(atPath: file)
    #expect(try EncoderWorker.run("stitch", session.path, "--to", film).status == 65)
    #expect(try EncoderWorker.run("stitch", scratch.path("nothing"), "--to", film).status == 65)
    #expect(try names(in: scratch.path) == ["output"])
  }

  /// The target must be a regular file, new or old, outside published sessions.
  @Test func targetThatIsNotARegularFileOrIsInASessionIsRefused() throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    try Tool.output("mkfifo", [scratch.path("fifo")])
    let before = try snapshot(of: session.path)
    for target in [
      session.path + "/film.mp4", session.video(session.manifests[0]), session.path + "/session.json",
      scratch.path("fifo"),
      "/dev/null", scratch.path, scratch.path("missing/film.mp4"), "", scratch.path("session.m3u8"),
    ] {
      let result = try EncoderWorker.run("stitch", session.path, "--to", target)
      #expect(result.status == 64, "\(target): \(result.status) \(result.errors)")
    }
    for target in [session.path, session.path + "/hls", scratch.path("fifo"), ""] {
      let result = try EncoderWorker.run("stitch", session.path, "--to", target, "--format", "hls")
      #expect(result.status == 64, "\(target): \(result.status) \(result.errors)")
    }
    #expect(try snapshot(of: session.path) == before)
    #expect(try names(in: scratch.path) == ["fifo", "output"])
    // `stitch` follows a link.
    try scratch.file("film.mp4", [])
    try FileManager.default.createSymbolicLink(
      atPath: scratch.path("link.mp4"), withDestinationPath: scratch.path("film.mp4"))
    #expect(try EncoderWorker.run("stitch", session.path, "--to", scratch.path("link.mp4")).status == 0)
    #expect(try Probe(scratch.path("film.mp4")).streams.count == 2)
    #expect(
      try FileManager.default.destinationOfSymbolicLink(atPath: scratch.path("link.mp4")) == scratch.path("film.mp4"))
    // The session is given as `.`, and `stitch` reuses the leftovers of a killed run.
    try scratch.file("film.mp4.part", [1, 2, 3])
    let inside = try Tool.run(
      EncoderWorker.path, ["stitch", ".", "--to", scratch.path("film.mp4")], in: URL(fileURLWithPath: session.path))
    #expect(inside.status == 0, "\(inside.errors)")
    #expect(!FileManager.default.fileExists(atPath: scratch.path("film.mp4.part")))
  }

  @Test func lostSegmentIsReportedAndOverlapIsRefused() throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let film = scratch.path("film.mp4")
    let second = session.path + "/segment-1767859517340"
    var moved = try SegmentManifestJSON(second + ".json")
    for suffix in ["json", "mp4"] { try FileManager.default.removeItem(atPath: "\(second).\(suffix)") }
    let result = try EncoderWorker.run("stitch", session.path, "--to", film, "--json")
    #expect(result.status == 0)
    #expect(result.errors.contains("part 2 of 3 is missing"))
    #expect(result.text.contains(#""problem":"of batch exact-1fps"#))

    // The same segment again, 4.5 s earlier.
    moved["startMs"] = .number(1_767_859_512_840)
    moved["endMs"] = .number(1_767_859_517_840)
    moved["file"] = .string("segment-1767859512840.mp4")
    moved["frames"] = .array(
      try moved.frames.map { $0.setting(["timeMs": .number(try $0.required("timeMs", .integer) - 4_500)]) })
    try moved.write(to: session.path + "/segment-1767859512840.json")
    for format in ["mp4", "hls"] {
      let overlap = try EncoderWorker.run("stitch", session.path, "--to", scratch.path("again"), "--format", format)
      #expect(overlap.status == 65)
      #expect(overlap.errors.contains("overlaps segment-1767859512340.mp4"))
    }
    #expect(try names(in: scratch.path) == ["film.mp4", "output"])
  }

  @Test func anEditedManifestIsNotTrusted() throws {
    let session = try EncoderWorker.encode(Fixture("gap"), into: scratch)
    let file = session.path + "/segment-1767859512340.json"
    let text = try String(contentsOfFile: file, encoding: .utf8).replacingOccurrences(of: "0000.jpg", with: "zzzz.jpg")
    try text.write(toFile: file, atomically: false, encoding: .utf8)
    for arguments in [
      ["stitch", session.path, "--to", scratch.path("film.mp4")],
      ["reencode", session.path, "-o", scratch.path("x"), "-q", "small"],
    ] {
      let result = try Tool.run(EncoderWorker.path, arguments)
      #expect(result.status == 65)
      #expect(result.errors.contains("segment-1767859512340.json: edited: its digest is another"))
    }
  }
}
