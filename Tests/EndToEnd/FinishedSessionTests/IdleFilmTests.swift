import Foundation
import TestSupport
import Testing

/// `stitch --idle` shortens the time in which nothing changes. Stock tools judge its films by those of the whole session.
@Suite struct IdleFilmTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// A film as stock tools decode it: when each sample comes on screen, and the digest of its picture.
  private struct Film {
    let samples: [(tick: Int64, digest: String)]
    let durations: [Int64]

    init(_ file: String) throws {
      let probe = try Probe(file)
      let decoding = try Tool.run(
        "ffmpeg",
        [
          "-v", "error", "-xerror", "-err_detect", "explode", "-i", file, "-noautoscale", "-map", "0:v", "-fps_mode",
          "passthrough", "-f", "framemd5", "-",
        ])
      try #require(decoding.errors == "" && decoding.status == 0, "\(file): \(decoding.errors)")
      let lines = decoding.text.split(separator: "\n").filter { !$0.hasPrefix("#") }
      let packets = probe.packets(of: 0)
      try #require(lines.count == packets.count)
      samples = zip(packets, lines).map { packet, line in
        (packet.pts, line.split(separator: ",").last?.trimmingCharacters(in: .whitespaces) ?? "")
      }
      durations = probe.streams.compactMap(\.durationTs)
    }

    func digest(at tick: Int64) -> String? { samples.last { $0.tick <= tick }?.digest }

    /// The time of each picture that differs from the one before, in ticks.
    var holds: [Int64] {
      let changes = samples.enumerated().filter { index, sample in
        index == 0 || samples[index - 1].digest != sample.digest
      }.map(\.element.tick)
      return zip(changes, changes.dropFirst() + [durations.first ?? 0]).map { $1 - $0 }
    }
  }

  private func stitch(_ session: PublishedSession, to name: String, _ options: String...) throws -> Tool.Result {
    try Tool.run(EncoderWorker.path, ["stitch", session.path, "--to", scratch.path(name)] + options)
  }

  /// Makes a film without idle time, and compares each of its moments with the whole film.
  @discardableResult
  private func expectSamePictures(
    _ session: PublishedSession, _ options: [String], round: Int = 47
  ) throws -> FilmMapJSON {
    let whole = scratch.path("whole.mp4")
    try #require(try Tool.run(EncoderWorker.path, ["stitch", session.path, "--to", whole]).status == 0)
    let (file, json) = (scratch.path("idle.mp4"), scratch.path("idle.json"))
    let result = try Tool.run(
      EncoderWorker.path, ["stitch", session.path, "--to", file, "--map", json, "--json"] + options)
    try #require(result.status == 0, "\(options): \(result.errors)")
    #expect(try Conformance.faults(ofMovie: file) == [], "\(options)")
    let (film, all, map) = (try Film(file), try Film(whole), try FilmMapJSON(json))
    let start = session.index.startMs
    #expect(map.format == "film-map/1" && map.session == session.index.session && map.speed == 1)
    #expect(
      map.pieces.first?.filmMs == 0 && zip(map.pieces, map.pieces.dropFirst()).allSatisfy { $0.filmEndMs == $1.filmMs })
    let lengthMs = Int64(map.pieces.last?.filmEndMs ?? 0)
    #expect(film.durations.allSatisfy { $0 == lengthMs * 90 } && map.durationMs == lengthMs, "\(options)")
    // The same object is in the output.
    struct Output: Decodable { let map: FilmMapJSON }
    #expect(try result.json(as: Output.self).map == map)
    var random = Random(seed: round)
    let ticks =
      film.samples.flatMap { [$0.tick, $0.tick + 1, max(0, $0.tick - 1)] }
      + (0..<Extent.of(500, full: 10_000)).map { _ in random.int(0...lengthMs * 90 - 1) }
    let other = try ticks.filter { $0 < lengthMs * 90 }.filter { tick in
      let unix = try #require(map.unixMs(atTick: tick))
      // Exact where the film runs at normal speed.
      return film.digest(at: tick) != all.digest(at: (unix - start) * 90 + tick % 90)
    }
    #expect(other == [], "\(options)")
    return map
  }

  private struct Changes: Decodable {
    struct Frame: Decodable { let timeMs: Int64, status: String, changedBlocks: Int? }
    let frames: [Frame]
  }

  @Test(arguments: Fixture.all.map(\.name)) func filmOfEachFixtureShowsEveryPicture(name: String) throws {
    let session = try EncoderWorker.encode(Fixture(name), into: scratch)
    for options in [["--idle", "cut"], ["--idle", "cut=200"], ["--idle", "cut=500", "--gaps", "cut"]] {
      let map = try expectSamePictures(session, options)
      // Every capture that differs from the one before is in the film.
      for manifest in session.manifests {
        let file = session.path + "/" + manifest.file.replacingOccurrences(of: ".mp4", with: ".json")
        let frames = try JSONDecoder().decode(Changes.self, from: Data(contentsOf: URL(fileURLWithPath: file))).frames
        for frame in frames where frame.status == "captured" && frame.changedBlocks != 0 {
          let timeMs = frame.timeMs
          #expect(map.pieces.contains { $0.unixMs <= timeMs && timeMs < $0.unixEndMs }, "\(options): \(timeMs)")
        }
      }
    }
  }

  /// A screen that changes now and then: each number is a picture, at a picture a second.
  private static let idle: [Int] = [
    [0], Array(repeating: 1, count: 13), [2, 3], Array(repeating: 4, count: 7), [5], Array(repeating: 6, count: 31),
  ].flatMap { $0 }

  private func encode(_ numbers: [Int], _ name: String = "idle", from startMs: Int64 = 0, _ options: String...) throws
    -> PublishedSession
  {
    let folder = try NumberedFolder("\(name)-\(startMs)", in: scratch)
    for (index, number) in numbers.enumerated() {
      try folder.add("\(NumberedFolder.startMs + startMs + 1_000 * Int64(index)).png", number)
    }
    let result = try Tool.run(
      EncoderWorker.path,
      ["encode", folder.path, "--output", scratch.path("out"), "--session", name] + options)
    try #require(result.status == 0, "\(result.errors)")
    return try PublishedSession(scratch.path("out/" + name))
  }

  @Test func stillOverManySegmentsIsASecond() throws {
    let session = try encode(Self.idle)
    #expect(session.manifests.count == 11)
    let map = try expectSamePictures(session, ["--idle", "cut"])
    // Seven numbers, each for a second; two of them last for one anyway.
    #expect(map.durationMs == 7_000)
    let film = try ShownFilm(scratch.path("idle.mp4"))
    #expect(film.samplesLast && (0..<7).map { film.number(at: Int64($0) * 90_000) } == (0..<7).map { $0 })
    #expect(try Film(scratch.path("idle.mp4")).holds.allSatisfy { $0 >= 40 * 90 })
    // Segments in which nothing changes are left out.
    let result = try stitch(session, to: "again.mp4", "--idle", "cut", "--json")
    struct Output: Decodable { let segments: Int }
    #expect(try result.json(as: Output.self).segments == 4)
    for options in [
      ["--idle", "speed=10"], ["--idle", "cut=100"], ["--idle", "cut", "--from", "+7.3s", "--to-time", "+21.7s"],
    ] {
      try expectSamePictures(session, options)
    }
  }

  @Test func faster() throws {
    let session = try encode(Self.idle)
    let lengthMs = Int64(Self.idle.count) * 1_000
    let rest = lengthMs - 7_000
    let result = try stitch(session, to: "film.mp4", "--idle", "speed=4", "--json")
    struct Output: Decodable { let durationMs: Int64 }
    let durationMs = try result.json(as: Output.self).durationMs
    #expect(durationMs == 7_000 + rest / 4, "\(result.errors)")
    #expect(try Conformance.faults(ofMovie: scratch.path("film.mp4")) == [])
    // At another speed, times are those of the film.
    let twice = try stitch(session, to: "film.mp4", "--idle", "cut", "--speed", "2", "--map", scratch.path("m.json"))
    #expect(twice.status == 0, "\(twice.errors)")
    #expect(try Probe(scratch.path("film.mp4")).streams[0].durationTs == 3_500 * 90)
    let map = try FilmMapJSON(scratch.path("m.json"))
    #expect(map.speed == 2 && map.durationMs == 3_500 && map.pieces.last?.filmEndMs == 3_500)
  }

  /// Batches whose pictures are equal are one still; the second batch changes later.
  @Test func stillGoesOnOverABatch() throws {
    _ = try encode([1, 1, 1, 1, 1], "walk")
    _ = try encode([1, 1, 1, 1, 1], "walk", from: 5_000)
    let session = try encode([2, 2, 2, 2, 2], "walk", from: 10_000)
    let map = try expectSamePictures(session, ["--idle", "cut"])
    #expect(map.pieces.map(\.unixMs) == [0, 10_000].map { NumberedFolder.startMs + $0 })
    #expect(map.durationMs == 2_000)
  }

  @Test func gapThatTheFilmHoldsIsIdle() throws {
    let session = try EncoderWorker.encode(Fixture("gap"), into: scratch)
    let gap = try #require(session.index.gaps.first)
    let map = try expectSamePictures(session, ["--idle", "cut"])
    #expect(map.chapters.map(\.kind).contains("after-gap"))
    let after = try #require(map.chapters.first { $0.kind == "after-gap" })
    #expect(after.unixMs == gap.endMs && after.title.hasPrefix("after a gap of"))
    #expect(!map.pieces.contains { $0.unixMs < gap.endMs - 100 && $0.unixEndMs >= gap.endMs })
    let chapters = try Tool.output(
      "ffprobe", ["-v", "error", "-show_chapters", "-of", "json", scratch.path("idle.mp4")])
    #expect(String(decoding: chapters, as: UTF8.self).contains("after a gap of 7 s, \(try #require(after.time))"))
  }

  @Test(arguments: ["gif", "webp"]) func animatedPicturesAreShorterToo(ending: String) throws {
    let session = try encode(Self.idle)
    let result = try stitch(session, to: "film.\(ending)", "--idle", "cut", "--json", "--map", scratch.path("m.json"))
    try #require(result.status == 0, "\(result.errors)")
    struct Output: Decodable { let durationMs: Int64, pictures: Int, merged: Int }
    let output = try result.json(as: Output.self)
    #expect(output.durationMs == 7_000 && output.pictures + output.merged == Self.idle.count)
    let shown = try ShownAnimation(scratch.path("film.\(ending)"))
    #expect(shown.pictures.count == output.pictures && shown.pictures.count >= 7)
    #expect(try FilmMapJSON(scratch.path("m.json")).durationMs == 7_000)
  }

  @Test func filmsAreThoseOfEncodeAndStitch() throws {
    let session = try encode(Self.idle)
    let own = scratch.path("own.mp4")
    let made = try EncoderWorker.run(
      "film", scratch.path("idle-0"), "--segment", "5", "--to", own, "--idle", "cut", "--map", scratch.path("own.json"))
    #expect(made.status == 0, "\(made.errors)")
    try #require(try stitch(session, to: "other.mp4", "--idle", "cut", "--map", scratch.path("other.json")).status == 0)
    #expect(FileManager.default.contentsEqual(atPath: own, andPath: scratch.path("other.mp4")))
    #expect(try FilmMapJSON(scratch.path("own.json")).pieces == FilmMapJSON(scratch.path("other.json")).pieces)
    // Without a clock, instants count from the first picture.
    let numbered = try scratch.directory("numbered")
    for number in 0..<6 {
      try FileManager.default.copyItem(
        atPath: Fixture("exact-1fps").path + String(format: "/%04d.jpg", number), toPath: "\(numbered)/\(number).jpg")
    }
    let clockless = try EncoderWorker.run(
      "film", numbered, "--to", own, "--fps", "0.5", "--map", scratch.path("c.json"))
    #expect(clockless.status == 0, "\(clockless.errors)")
    let map = try FilmMapJSON(scratch.path("c.json"))
    #expect(map.clock == "unknown" && map.fromMs == 0 && map.pieces.map(\.unixMs) == [0])
    #expect(map.chapters.allSatisfy { $0.time == nil })
  }

  /// Segments of another encoder keep their time, and the program says so.
  @Test func importedSegmentsKeepTheirTime() throws {
    let session = try SegmentFolder.importedSession(in: scratch)
    let result = try stitch(session, to: "film.mp4", "--idle", "cut", "--json")
    #expect(result.status == 0 && result.errors.contains("segments keep their idle time"), "\(result.errors)")
    #expect(try Probe(scratch.path("film.mp4")).streams[0].durationTs == session.index.durationMs * 90)
  }

  @Test func playlistHasItsMapAndItsDates() throws {
    let session = try EncoderWorker.encode(Fixture("gap"), into: scratch)
    let result = try stitch(session, to: "hls", "--format", "hls", "--map", scratch.path("hls.json"), "--json")
    try #require(result.status == 0, "\(result.errors)")
    let map = try FilmMapJSON(scratch.path("hls.json"))
    let playlist = try Playlist(scratch.path("hls"))
    #expect(map.durationMs == playlist.lengths.reduce(0, +) && map.pieces.count == 1)
    let gap = try #require(session.index.gaps.first)
    let dates = playlist.values("EXT-X-DATERANGE")
    #expect(dates.count == 1 && dates[0].contains("DURATION=\((gap.endMs - gap.startMs) / 1_000).000"), "\(dates)")
    #expect(try Conformance.faults(ofPlaylistsIn: scratch.path("hls")) == [])
  }

  @Test func metadataTrackIsReadByStockTools() throws {
    let session = try encode(Self.idle)
    let track = scratch.path("film.vtt")
    let result = try stitch(session, to: "film.mp4", "--idle", "cut", "--map", track, "--map", scratch.path("m.json"))
    try #require(result.status == 0, "\(result.errors)")
    let cues = try Tool.output("ffprobe", ["-v", "error", "-show_entries", "packet=pts", "-of", "csv=p=0", track])
    let starts = String(decoding: cues, as: UTF8.self).split(separator: "\n").compactMap {
      Int64($0.prefix { $0 != "," })
    }
    let map = try FilmMapJSON(scratch.path("m.json"))
    #expect(starts.sorted() == (map.pieces.map { Int64($0.filmMs) } + map.chapters.map(\.filmMs)).sorted())
  }

  @Test func outputsThatCannotHonourItRefuse() throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let before = try names(in: scratch.path)
    for (options, reason) in [
      (["--to", "film.mp4", "--idle", "drop"], "it is cut, cut=MS"),
      (["--to", "film.mp4", "--idle", "cut", "--speed", "101"], "leaves out pictures by itself"),
      (["--to", "film.mp4", "--idle", "speed=50", "--speed", "3"], "faster than 100"),
      (["--to", "film.mp4", "--idle-events"], "--idle-events is for --idle"),
      (["--to", "film.png", "--idle", "cut"], "no idle time"),
      (["--to", "film.jpg", "--map", "m.json"], "no film time"),
      (["--to", "hls", "--format", "hls", "--idle", "cut"], "HLS has whole segments"),
      (["--to", "film.mp4", "--map", "map.txt"], "ends in .json or .vtt"),
      (["--to", "film.mp4", "--map", "m.json", "--map", "m.json"], "same file twice"),
    ] {
      let result = try Tool.run(EncoderWorker.path, ["stitch", session.path] + options)
      #expect(result.status == 64 && result.errors.contains(reason), "\(options): \(result.errors)")
    }
    let inside = try stitch(session, to: "film.mp4", "--map", session.path + "/map.json")
    #expect(inside.status == 64 && inside.errors.contains("inside a published session"), "\(inside.errors)")
    #expect(try names(in: scratch.path) == before)
  }
}
