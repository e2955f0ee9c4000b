import Foundation
import TestSupport
import Testing

/// Films without the key frames that nobody needs. Stock tools compare them with films that have the key frame of each segment.
@Suite struct KeyFrameFilmTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// A film as stock tools read it.
  private struct Film {
    let probe: Probe
    /// The start and the digest of each decoded picture.
    let pictures: [(tick: Int64, digest: String)]
    let texts: [TimingEntry]
    let chapters: String

    init(_ file: String) throws {
      probe = try Probe(file)
      let digests = try Self.digests(file)
      let video = probe.packets(of: 0)
      try #require(digests.count == video.count)
      pictures = zip(video, digests).map { ($0.pts, $1) }
      texts = try Probe.timingTexts(file)
      chapters = String(
        decoding: try Tool.output("ffprobe", ["-v", "error", "-show_chapters", "-of", "json", file]), as: UTF8.self)
    }

    var keys: [Int64] { probe.packets(of: 0).filter(\.isKey).map(\.pts) }
    var bytes: Int { probe.packets(of: 0).reduce(0) { $0 + (Int($1.size) ?? 0) } }

    /// Returns the digests of a film's pictures.
    ///
    /// - Parameters:
    ///   - tick: where ffmpeg seeks to; nil for all pictures.
    static func digests(_ file: String, at tick: Int64? = nil) throws -> [String] {
      let seek = tick.map { ["-ss", String(format: "%.6f", Double($0) / 90_000)] } ?? []
      let one = tick == nil ? [] : ["-frames:v", "1"]
      let decoding = try Tool.run(
        "ffmpeg",
        ["-v", "error", "-xerror", "-err_detect", "explode"] + seek + ["-i", file, "-noautoscale", "-map", "0:v"]
          + one + ["-fps_mode", "passthrough", "-f", "framemd5", "-"])
      try #require(decoding.errors == "" && decoding.status == 0, "\(file): \(decoding.errors)")
      return decoding.text.split(separator: "\n").filter { !$0.hasPrefix("#") }
        .map { $0.split(separator: ",").last?.trimmingCharacters(in: .whitespaces) ?? "" }
    }
  }

  private func stitch(_ session: PublishedSession, to name: String, _ options: [String] = []) throws -> String {
    let file = scratch.path(name)
    let result = try Tool.run(EncoderWorker.path, ["stitch", session.path, "--to", file] + options)
    try #require(result.status == 0, "\(options): \(result.errors)")
    #expect(try Conformance.faults(ofMovie: file) == [], "\(options)")
    return file
  }

  /// Makes a film with and without all key frames, and compares every picture, instant, text and chapter.
  @discardableResult
  private func expectSamePictures(_ session: PublishedSession, _ options: [String] = []) throws -> (
    film: Film, all: Film
  ) {
    let film = try Film(stitch(session, to: "film.mp4", options))
    let all = try Film(stitch(session, to: "all.mp4", options + ["--key-every", "0"]))
    let other = zip(film.pictures, all.pictures).filter { $0 != $1 }
    #expect(film.pictures.count == all.pictures.count && other.isEmpty, "\(options): \(other.prefix(3))")
    #expect(film.probe.packets(of: 0).map(\.duration) == all.probe.packets(of: 0).map(\.duration))
    #expect(film.probe.streams.map(\.durationTs) == all.probe.streams.map(\.durationTs))
    let (timing, allTiming) = (film.probe.packets(of: 1), all.probe.packets(of: 1))
    #expect(timing.map(\.pts) == allTiming.map(\.pts) && timing.map(\.duration) == allTiming.map(\.duration))
    #expect(film.texts == all.texts && film.chapters == all.chapters, "\(options)")
    #expect(film.keys.first == 0 && Set(film.keys).isSubset(of: all.keys), "\(options)")
    return (film, all)
  }

  /// A session of pictures that follow one another in a second, with some jitter.
  ///
  /// - Parameter pictures: the paths of the pictures.
  private func encode(_ pictures: [String], _ name: String) throws -> PublishedSession {
    let folder = try scratch.directory(name)
    var random = Random(seed: 3)
    for (index, picture) in pictures.enumerated() {
      let timeMs = NumberedFolder.startMs + 1_000 * Int64(index) + (index == 0 ? 0 : random.int(-30...30))
      try FileManager.default.copyItem(
        atPath: picture, toPath: "\(folder)/\(timeMs).\((picture as NSString).pathExtension)")
    }
    let result = try Tool.run(
      EncoderWorker.path, ["encode", folder, "--output", scratch.path("out"), "--session", name])
    try #require(result.status == 0, "\(result.errors)")
    return try PublishedSession(scratch.path("out/" + name))
  }

  /// A session whose pictures show numbers.
  private func encode(numbers: [Int], _ name: String) throws -> PublishedSession {
    let folder = try NumberedFolder("numbers", in: scratch)
    for number in Set(numbers) { try folder.add("\(number).png", number) }
    let session = try encode(numbers.map { "\(folder.path)/\($0).png" }, name)
    try FileManager.default.removeItem(atPath: folder.path)
    return session
  }

  private static func numbers(_ runs: (number: Int, count: Int)...) -> [Int] {
    runs.flatMap { Array(repeating: $0.number, count: $0.count) }
  }

  /// An idle screen whose clock goes on twice, inside of segments.
  private static let idle = numbers((1, 8), (2, 60), (3, 54))

  // MARK: - Pictures

  @Test func idleScreenHasFewKeyFrames() throws {
    let session = try encode(numbers: Self.idle, "idle")
    let (film, all) = try expectSamePictures(session)
    let starts = session.manifests.map { ($0.startMs - session.index.startMs) * 90 }
    #expect(all.keys == starts && starts.count == 25)
    // The first one, and those behind the changes.
    #expect(film.keys == [starts[0], starts[2], starts[14]])
    #expect(film.bytes < all.bytes)
    // Each capture has a sample. Pictures have repeats, but for the middle of a still.
    let instants = film.pictures.map(\.tick)
    let captures = session.captured.map { ($0.timeMs - session.index.startMs) * 90 }
    #expect(Set(captures).isSubset(of: instants))
    func dense(_ ticks: Range<Int64>) -> Bool {
      let inside = instants.filter { ticks.contains($0) }
      return zip(inside, inside.dropFirst()).allSatisfy { $1 - $0 <= 11_250 }
    }
    #expect(dense(captures[8]..<captures[8] + 360_000) && dense(captures[68] - 540_000..<captures[68] + 360_000))
    #expect(!dense(captures[30]..<captures[50]) && instants.count < 600)
    // ffmpeg seeks to any of them.
    var random = Random(seed: 11)
    for _ in 0..<Extent.of(12, full: 200) {
      let shown = film.pictures[Int(random.int(0...Int64(film.pictures.count - 1)))]
      #expect(try Film.digests(scratch.path("film.mp4"), at: shown.tick) == [shown.digest], "\(shown.tick)")
    }
  }

  @Test(arguments: Fixture.all + Fixture.corpus) func everyFixtureShowsTheSame(fixture: Fixture) throws {
    let session = try EncoderWorker.encode(fixture, into: scratch)
    try expectSamePictures(session)
  }

  /// A picture of another size has another parameter set, which is in band.
  @Test(arguments: ["odd-size", "rotation"]) func stillsOfOddAndOfSeveralSizes(name: String) throws {
    let pictures = try names(in: Fixture(name).path).filter { $0.hasSuffix(".jpg") || $0.hasSuffix(".png") }
      .map { Fixture(name).path + "/" + $0 }
    let (first, last) = (try #require(pictures.first), pictures[pictures.count / 2])
    let stills = [first, last, first].flatMap { Array(repeating: $0, count: 17) }
    let session = try encode(stills, name)
    let (film, all) = try expectSamePictures(session)
    #expect(film.keys.count < all.keys.count && film.keys.count >= 3)
    #expect(Set(film.pictures.map(\.digest)).count >= 2)
  }

  /// A film of part of a session, at another speed, without idle time, or without gaps.
  @Test(arguments: [
    ["--from", "+12.345s"], ["--from", "+33s", "--to-time", "+61.234s"], ["--speed", "0.4"], ["--speed", "7.3"],
    ["--speed", "2000"], ["--idle", "cut"], ["--idle", "speed=4", "--from", "+3.2s"], ["--gaps", "cut"],
  ])
  func partsShowTheSame(options: [String]) throws {
    let session = try encode(numbers: Self.idle + [4, 5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 7], "parts")
    let (clip, _) = try expectSamePictures(session, options)
    guard options[0] == "--from", !options.contains("--idle") else { return }
    let whole = try Film(stitch(session, to: "whole.mp4"))
    let from = Int64(((Double(options[1].filter { $0.isNumber || $0 == "." }) ?? 0) * 90_000).rounded())
    let other = clip.pictures.filter { picture in
      whole.pictures.last { $0.tick <= from + picture.tick }?.digest != picture.digest
    }
    #expect(other.isEmpty, "\(options): \(other.prefix(3))")
  }

  /// A clip that begins inside a segment, while its first picture stays, begins with its key frame.
  @Test func clipOfAStillBeginsWithTheKeyFrameOfItsSegment() throws {
    let session = try encode(numbers: Self.idle, "clip")
    // Both changes are in the middle of a segment.
    for (from, isKey) in [("+20.4s", true), ("+67.9s", true), ("+9.3s", false), ("+69s", false)] {
      let clip = try Film(stitch(session, to: "clip.mp4", ["--from", from]))
      let place = Int64(((Double(from.dropFirst().dropLast()) ?? 0) * 1_000).rounded()) + session.index.startMs
      let manifest = try #require(session.manifests.last { $0.startMs <= place })
      let segment = try Probe(session.video(manifest)).packets(of: 0)
      #expect((clip.probe.packets(of: 0)[0].size == segment[0].size) == isKey, "\(from)")
      // Later segments continue.
      #expect(clip.keys.count <= 3, "\(from): \(clip.keys)")
    }
  }

  // MARK: - The option

  @Test func keyFramesAreKeptInTime() throws {
    let session = try encode(numbers: Self.numbers((1, 70)), "rule")
    let starts = session.manifests.map { ($0.startMs - session.index.startMs) * 90 }
    for (seconds, most) in [("11", 11), ("60", 60), ("600", 600)] {
      let keys = try Film(stitch(session, to: "film.mp4", ["--key-every", seconds])).keys
      let next = keys.dropFirst() + [70 * 90_000]
      #expect(zip(keys, next).allSatisfy { $1 - $0 <= Int64(most) * 90_000 }, "\(seconds): \(keys)")
      #expect(keys.count < starts.count && (most == 600) == (keys == [0]), "\(seconds): \(keys)")
    }
    // A film of pictures is that of their session.
    let own = try EncoderWorker.run(
      "film", scratch.path("rule"), "--segment", "5", "--to", scratch.path("own.mp4"), "--key-every", "11")
    #expect(own.status == 0, "\(own.errors)")
    #expect(
      FileManager.default.contentsEqual(
        atPath: scratch.path("own.mp4"), andPath: try stitch(session, to: "film.mp4", ["--key-every", "11"])))
    // Fragments of HLS begin with key frames.
    let hls = scratch.path("hls")
    #expect(try EncoderWorker.run("stitch", session.path, "--to", hls, "--format", "hls").status == 0)
    #expect(try Probe(hls + "/session.m3u8").packets(of: 0).filter(\.isKey).map(\.pts) == starts)
  }

  @Test func wrongValuesAreRefused() throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let before = try names(in: scratch.path)
    for (options, reason) in [
      (["--to", "film.mp4", "--key-every", "601"], "0 to 600"),
      (["--to", "film.mp4", "--key-every", "-1"], "0 to 600"),
      (["--to", "film.gif", "--key-every", "5"], "--key-every is for MP4"),
      (["--to", "film.png", "--key-every", "5"], "--key-every is for MP4"),
      (["--to", "hls", "--format", "hls", "--key-every", "5"], "HLS has whole segments"),
    ] {
      let result = try Tool.run(EncoderWorker.path, ["stitch", session.path] + options)
      #expect(result.status == 64 && result.errors.contains(reason), "\(options): \(result.errors)")
    }
    #expect(try names(in: scratch.path) == before)
  }
}
