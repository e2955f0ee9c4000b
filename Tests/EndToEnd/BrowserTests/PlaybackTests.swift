import Foundation
import TestSupport
import Testing

/// A browser that plays a film shows each picture, and none too early. The tests read the painted numbers off the screen.
@Suite(.serialized) struct PlaybackTests: PlaybackSuite {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// One attempt to play a file to its end.
  private struct Play: Decodable {
    /// Milliseconds from the start of the attempt to the first presentation of each number.
    let seen: [String: Double]
    /// Media times of the presented pictures, in milliseconds.
    let times: [Double]
    let endedMs: Double
    /// Pictures that the browser counts as dropped.
    let dropped: Int
    /// Presented pictures for which the page got no callback.
    let missed: Int
    /// The longest delay between the presentation of a picture and the page's callback, in milliseconds.
    let lateMs: Double
  }

  /// A file to play, and its pictures.
  private struct Film {
    let file: String
    let captures: [(number: Int, atMs: Int64)]
    let endMs: Int64

    /// Films have repeats on one grid; segments, and the fragments of playlists, have fewer.
    var earliestMs: Int64 { file.hasSuffix(".mp4") && !file.contains("segment-") ? 100 : 200 }

    /// Media times that the browser must present. The first picture is on screen before playback starts. Chromium's HLS
    /// player has its own time base.
    var times: [Int64] { file.hasSuffix(".mp4") ? captures.dropFirst().map(\.atMs) : [] }
  }

  /// Plays films, and playlists in the browser's own HLS player, which skips gaps. The browser must show every frame,
  /// and none too early. There is no upper bound on times: lateness depends on the machine.
  @Test func filmsAndPlaylistsPlayThrough() throws {
    var films: [Film] = []
    for fixture in Self.fixtures {
      let session = try EncoderWorker.encode(fixture, into: scratch)
      let (start, name) = (session.index.startMs, session.index.session)
      let gaps = session.index.gaps
      try #require(try EncoderWorker.run("stitch", session.path, "--to", scratch.path("\(name).mp4")).status == 0)
      try #require(
        try EncoderWorker.run("stitch", session.path, "--to", scratch.path("hls-\(name)"), "--format", "hls").status
          == 0)
      let captures = session.captured.enumerated().map { (number: $0, atMs: $1.timeMs - start) }
      films.append(Film(file: "\(name).mp4", captures: captures, endMs: session.index.durationMs))
      let skipped = captures.map { number, atMs in
        (number, atMs - gaps.filter { $0.endMs - start <= atMs }.reduce(0) { $0 + $1.endMs - $1.startMs })
      }
      let shownMs = session.manifests.reduce(0) { $0 + $1.durationMs }
      films.append(Film(file: "hls-\(name)/session.m3u8", captures: skipped, endMs: shownMs))
    }
    try expectToPlay(films)
  }

  /// Cuts before, at and behind captures, at seams of segments, and in a gap. The first picture is on screen before playback.
  @Test func clipsPlayFromTheirFirstPictureToTheirEnd() throws {
    var films: [Film] = []
    for (name, ranges, speed): (String, [Range<Int64>], String) in [
      ("exact-1fps", [2_300..<5_700, 4_999..<6_001, 1_000..<3_001, 3_999..<4_400], "1"),
      ("irregular-3fps", [1_111..<3_333], "1"), ("gap", [6_500..<9_500, 14_000..<17_000], "1"),
      ("rotation", [1_500..<4_200], "1"), ("on-change", [500..<4_000], "1"), ("exact-1fps", [2_300..<8_700], "2.5"),
      ("irregular-3fps", [1_111..<2_221], "0.4"),
    ] {
      let session = try EncoderWorker.encode(Fixture(name), into: scratch)
      for range in ranges {
        let file = "clip-\(films.count).mp4"
        let start = session.index.startMs
        let result = try EncoderWorker.run(
          "stitch", session.path, "--to", scratch.path(file), "--from", "\(start + range.lowerBound)", "--to-time",
          "\(start + range.upperBound)", "--speed", speed)
        try #require(result.status == 0, "\(result.errors)")
        let captures = session.captured.enumerated().map { (number: $0, atMs: $1.timeMs - start) }
        let factor = try #require(Double(speed))
        let shown = captures.filter { capture in
          capture.atMs < range.upperBound
            && captures.dropFirst(capture.number + 1).first.map { $0.atMs > range.lowerBound } ?? true
        }.map { ($0.number, Int64(Double(max(0, $0.atMs - range.lowerBound)) / factor)) }
        films.append(Film(file: file, captures: shown, endMs: Int64(Double(range.count) / factor)))
      }
    }
    let first = try Browser(serving: scratch.path).run(
      Self.page + """
        const result = [];
        for (const file of parameters) {
          const video = await film(file);
          result.push([number(video), Math.round(video.duration * 1000)]);
        }
        return result;
        """, parameters: films.map(\.file), as: [[Int64]].self)
    #expect(first == films.map { [Int64($0.captures[0].number), $0.endMs] })
    try expectToPlay(films)
  }

  /// Idle time is cut or shown faster: each picture comes when the map says so.
  @Test func filmsWithoutIdleTimePlayThrough() throws {
    var films: [Film] = []
    for (name, rule) in [
      ("gap", "cut=400"), ("on-change", "cut"), ("on-change", "speed=8"), ("jittered", "cut=300"),
      ("jittered", "cut"),
    ] {
      let session = try EncoderWorker.encode(Fixture(name), into: scratch)
      let (file, map) = ("idle-\(films.count).mp4", scratch.path("idle.json"))
      let result = try EncoderWorker.run(
        "stitch", session.path, "--to", scratch.path(file), "--idle", rule, "--map", map)
      try #require(result.status == 0, "\(result.errors)")
      let known = try FilmMapJSON(map)
      let captures = try session.captured.enumerated().map { number, capture in
        let piece = try #require(known.pieces.last { $0.unixMs <= capture.timeMs })
        return (number: number, atMs: Int64(piece.filmMs) + capture.timeMs - piece.unixMs)
      }
      films.append(Film(file: file, captures: captures, endMs: known.durationMs))
    }
    try expectToPlay(films)
  }

  /// A picture that is held over a gap makes Chromium show the next ones too early, and end too early, unless its end is repeated.
  @Test func picturesBehindGapsComeInTime() throws {
    var films: [Film] = []
    for (name, starts) in [("middle", [0, 12_000, 24_000]), ("end", [0, 30_000])] as [(String, [Int64])] {
      let captures = starts.flatMap { [$0, $0 + 1_000, $0 + 2_000] }
      for (row, start) in starts.enumerated() {
        let batch = try batch(
          "\(name)-\(row)", of: captures.filter { (start..<start + 3_000).contains($0) }, endMs: start + 3_000,
          first: 3 * row)
        let result = try EncoderWorker.run(
          "encode", batch, "--session", name, "--output", scratch.path("output"))
        try #require(result.status == 0, "\(result.errors)")
      }
      let session = scratch.path("output/\(name)")
      try #require(try EncoderWorker.run("stitch", session, "--to", scratch.path("\(name).mp4")).status == 0)
      films.append(
        Film(
          file: "\(name).mp4", captures: captures.enumerated().map { (number: $0, atMs: $1) },
          endMs: (starts.last ?? 0) + 3_000))
    }
    try expectToPlay(films)
  }

  /// Writes a batch of numbered pictures.
  ///
  /// - Parameters:
  ///   - captures: their times, and `endMs` that of the end, all in milliseconds from one start.
  ///   - first: the number of the first one.
  /// - Returns: its path.
  private func batch(_ name: String, of captures: [Int64], endMs: Int64, first: Int = 0) throws -> String {
    let start: Int64 = 1_767_859_512_340
    let batch = try scratch.directory(name)
    for (index, capture) in captures.enumerated() {
      let source = Fixture("exact-1fps").path + String(format: "/%04d.jpg", first + index)
      try FileManager.default.copyItem(atPath: source, toPath: "\(batch)/\(start + capture).jpg")
    }
    let description = #"{"version":1,"capture":"onChange","intervalMs":1000,"endMs":\#(start + endMs)}"#
    try Data(description.utf8).write(to: URL(fileURLWithPath: batch + "/batch.json"))
    return batch
  }

  /// Captures and ends that browsers cut short unless the encoder repeats pictures. The test plays the first segment of
  /// each.
  private static let segments: [(captures: [Int64], endMs: Int64)] = [
    ([0, 1_000, 2_000, 3_000, 4_000], 5_000),
    ([0, 1_012, 1_987, 3_020, 4_013], 5_000),
    ([0, 1_000, 2_000, 3_010, 4_730], 5_000),
    ([0], 5_000),
    ([0, 1_000, 4_000], 5_000),
    ([0, 3_000, 4_000], 5_000),
    ([0, 2_500], 5_000),
    ([0, 1_000, 2_000, 3_000, 4_900], 5_000),
    ([0, 1_000, 2_000, 3_000], 3_040),
    ([0, 353, 710, 1_024, 1_347, 1_670, 1_993, 2_378, 3_900], 4_030),
    ([0, 333, 666, 999, 1_332, 1_665, 1_998, 2_331, 2_664], 2_694),
    ([0, 250, 650, 960, 1_350, 1_610, 1_650], 1_950),
  ]

  @Test func segmentsWithIrregularCapturesPlayInRealTime() throws {
    let start: Int64 = 1_767_859_512_340
    for (row, segment) in Self.segments.enumerated() {
      let batch = try batch("row\(row)", of: segment.captures, endMs: segment.endMs)
      try #require(try EncoderWorker.run("encode", batch, "--output", scratch.path("output")).status == 0)
    }
    try expectToPlay(
      Self.segments.indices.map { row in
        let segment = try PublishedSession(scratch.path("output/row\(row)")).manifests[0]
        let captures = segment.offsetsMs.enumerated().map { (number: $0, atMs: $1) }
        return Film(
          file: "output/row\(row)/segment-\(start).mp4", captures: captures, endMs: segment.durationMs)
      })
  }

  /// A film as the page gets it.
  private struct Wanted: Encodable {
    let file: String
    let numbers: [Int]
    let times: [Int64]
  }

  private func expectToPlay(_ films: [Film]) throws {
    let plays = try Browser(serving: scratch.path).run(
      Self.page + "return await Promise.all(parameters.map(playThrough));",
      parameters: films.map { Wanted(file: $0.file, numbers: $0.captures.map(\.number), times: $0.times) },
      as: [[Play]].self)
    for (film, attempts) in zip(films, plays) {
      for attempt in attempts { expectNothingWrong(in: attempt, of: film) }
      let last = try #require(attempts.last)
      let state = "\(film.file): attempt \(attempts.count): \(last)"
      for capture in film.captures { #expect(last.seen["\(capture.number)"] != nil, "\(capture) in \(state)") }
      // A busy browser may leave out the picture and present its repeat.
      for (time, next) in zip(film.times, film.times.dropFirst() + [film.endMs]) {
        let shown = Double(time) - 1..<Double(max(next - 1, time + 1))
        #expect(last.times.contains { shown.contains($0) }, "\(time) ms in \(state)")
      }
    }
  }

  /// Checks conditions that hold for each attempt, even on a busy machine.
  private func expectNothingWrong(in attempt: Play, of film: Film) {
    let numbers = Set(film.captures.map { "\($0.number)" })
    #expect(numbers.isSuperset(of: attempt.seen.keys), "\(film.file): \(attempt.seen)")
    for capture in film.captures {
      guard let seen = attempt.seen["\(capture.number)"] else { continue }
      #expect(seen >= Double(capture.atMs - film.earliestMs), "\(film.file): \(capture)")
    }
    #expect(attempt.endedMs >= Double(film.endMs) - 100, "\(film.file): \(attempt)")
  }
}
