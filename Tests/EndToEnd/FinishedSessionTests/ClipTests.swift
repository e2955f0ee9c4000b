import Foundation
import JSON
import TestSupport
import Testing

/// `stitch --from --to-time --speed` cuts a part out of a session. Stock tools judge it by the film of the whole session.
@Suite struct ClipTests {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// A film as stock tools read it.
  private struct Film {
    let probe: Probe
    /// The start and the digest of each decoded picture.
    let pictures: [(tick: Int64, digest: String)]
    let timing: [Probe.Packet]
    let texts: [TimingEntry]

    init(_ file: String) throws {
      probe = try Probe(file)
      let decoding = try Tool.run(
        "ffmpeg",
        [
          "-v", "error", "-xerror", "-err_detect", "explode", "-i", file, "-noautoscale", "-map", "0:v", "-fps_mode",
          "passthrough", "-f", "framemd5", "-",
        ])
      try #require(decoding.errors == "" && decoding.status == 0, "\(decoding.errors)")
      let digests = String(decoding: decoding.output, as: UTF8.self).split(separator: "\n").filter {
        !$0.hasPrefix("#")
      }
      .map { $0.split(separator: ",").last?.trimmingCharacters(in: .whitespaces) ?? "" }
      let video = probe.packets(of: 0)
      try #require(digests.count == video.count)
      pictures = zip(video, digests).map { ($0.pts, $1) }
      timing = probe.packets(of: 1)
      texts = timing.isEmpty ? [] : try Probe.timingTexts(file)
    }

    /// The entries of the timing track; nil is a gap.
    var entries: [(from: Int64, to: Int64, text: TimingEntry?)] {
      var rest = texts[...]
      return timing.map { ($0.pts, $0.pts + $0.duration, $0.size == "2" ? nil : rest.popFirst()) }
    }
  }

  /// Ranges of a session in milliseconds from its start: at random, and beside captures.
  private func ranges(of session: PublishedSession, lengthMs: Int64, count: Int, seed: Int) -> [Range<Int64>] {
    var random = Random(seed: seed)
    let captures = session.captured.map { $0.timeMs - session.index.startMs }
    func instant() -> Int64 {
      let near = captures[Int(random.int(0...Int64(captures.count - 1)))] + random.int(-1...1)
      return random.once(in: 3) ? near : random.int(0...lengthMs)
    }
    var ranges: [Range<Int64>] = []
    while ranges.count < count {
      let from = max(0, min(instant(), lengthMs - 1))
      let to = random.once(in: 6) ? from + 1 : min(instant(), lengthMs)
      if from < to { ranges.append(from..<to) }
    }
    return ranges
  }

  private func clip(_ session: PublishedSession, _ range: Range<Int64>, _ options: String...) throws -> Film {
    let start = session.index.startMs
    let result = try Tool.run(
      EncoderWorker.path,
      [
        "stitch", session.path, "--to", scratch.path("clip.mp4"), "--from", "\(start + range.lowerBound)", "--to-time",
        "\(start + range.upperBound)",
      ] + options)
    try #require(result.status == 0, "\(range): \(result.errors)")
    #expect(try Conformance.faults(ofMovie: scratch.path("clip.mp4")) == [])
    return try Film(scratch.path("clip.mp4"))
  }

  /// Compares a clip with the part of the film: times, pictures, timing track and durations, to the tick.
  private func expect(_ clip: Film, isPart range: Range<Int64>, of film: Film, speed: Int64 = 1_000) {
    let (from, to) = (range.lowerBound * 90, range.upperBound * 90)
    // Bounds are rounded down. A picture of less than a tick gets one.
    let bounds = film.pictures.map(\.tick) + film.entries.flatMap { [$0.from, $0.to] } + [from, to]
    var ticks: [Int64: Int64] = [:]
    var latest: Int64 = -1
    for bound in Set(bounds).sorted() where (from...to).contains(bound) {
      latest = max((bound - from) * 1_000 / speed, latest + 1)
      ticks[bound] = latest
    }
    func tick(_ bound: Int64) -> Int64? { ticks[max(from, min(bound, to))] }
    let all = film.entries.filter { $0.from < to && $0.to > from }
    // A part in a gap has no timing track.
    let entries = all.contains { $0.text != nil } ? all : []
    let tracks = entries.isEmpty ? 1 : 2
    #expect(clip.probe.streams.map(\.durationTs) == Array(repeating: tick(to), count: tracks), "\(range)")
    #expect(clip.probe.streams.map(\.startPts) == Array(repeating: 0, count: tracks), "\(range)")
    let shown = film.pictures.indices.filter { index in
      film.pictures[index].tick < to && film.pictures.dropFirst(index + 1).first.map { $0.tick > from } ?? true
    }.map { (tick: tick(film.pictures[$0].tick), digest: film.pictures[$0].digest) }
    // Each picture of the film begins in the clip when it should; both may repeat it.
    var rest = zip(shown, [""] + shown.map(\.digest)).filter { $0.digest != $1 }.map(\.0)[...]
    var current = ""
    for picture in clip.pictures {
      if let next = rest.first, picture.tick >= next.tick ?? .max {
        #expect(picture.tick == next.tick, "\(range)")
        current = next.digest
        rest.removeFirst()
      }
      #expect(picture.digest == current, "\(range) at tick \(picture.tick)")
    }
    #expect(rest.isEmpty, "\(range)")
    #expect(clip.entries.map(\.text) == entries.map(\.text), "\(range)")
    #expect(clip.entries.map(\.from) == entries.map { tick($0.from) }, "\(range)")
    #expect(clip.entries.map(\.to) == entries.map { tick($0.to) }, "\(range)")
  }

  private func film(of session: PublishedSession, _ options: String...) throws -> Film {
    let file = scratch.path("\(session.index.session).mp4")
    let result = try Tool.run(EncoderWorker.path, ["stitch", session.path, "--to", file] + options)
    try #require(result.status == 0, "\(result.errors)")
    return try Film(file)
  }

  private func generated(_ seed: Int) throws -> PublishedSession {
    let session = try GeneratedSession(seed: seed, in: scratch)
    for batch in session.batches {
      try #require(try EncoderWorker.run("encode", batch, "--output", scratch.path("output")).status == 0)
    }
    return try PublishedSession(scratch.path("output/\(session.name)"))
  }

  @Test(arguments: ["gap", "rotation", "irregular-3fps", "generated-1", "generated-2"])
  func clipShowsItsPartOfTheFilmToTheTick(name: String) throws {
    let seed = Int(name.dropFirst(10))
    let session = try seed.map(generated) ?? EncoderWorker.encode(Fixture(name), into: scratch)
    let film = try film(of: session)
    let lengthMs = session.index.durationMs
    for range in ranges(of: session, lengthMs: lengthMs, count: Extent.of(8, full: 40), seed: seed ?? 40) {
      expect(try clip(session, range), isPart: range, of: film)
    }
    for (speed, text): (Int64, String) in [(370, "0.37"), (7_300, "7.3"), (100_000, "100")] {
      for range in ranges(of: session, lengthMs: lengthMs, count: Extent.of(1, full: 8), seed: Int(speed)) {
        expect(try clip(session, range, "--speed", text), isPart: range, of: film, speed: speed)
      }
    }
  }

  /// A session whose worker was upgraded: older segments of the same quality searched motion near, newer ones search far.
  @Test func segmentsOfBothMotionSearchesMakeOneFilm() throws {
    let generated = try GeneratedSession(seed: 2, in: scratch)
    for (number, batch) in generated.batches.enumerated() {
      let quality = number % 2 == 0 ? "balanced" : "small"
      let result = try EncoderWorker.run("encode", batch, "--output", scratch.path("output"), "--quality", quality)
      try #require(result.status == 0, "\(result.errors)")
    }
    let session = try PublishedSession(scratch.path("output/\(generated.name)"))
    var searches: Set<String> = []
    for manifest in session.manifests {
      let path = session.path + "/" + manifest.file.replacingOccurrences(of: ".mp4", with: ".json")
      var json = try SegmentManifestJSON(path)
      json["encoder"] = json["encoder"]?.setting(["quality": .string("small"), "rateFactor": .number("35.1")])
      try json.write(to: path)
      searches.insert(try #require(json["encoder"]?.object?["parameters"]?.string))
    }
    #expect(searches.count == 2)
    let film = try film(of: session)
    let start = session.index.startMs
    for (manifest, next) in zip(session.manifests, session.manifests.dropFirst().map(\.startMs) + [.max]) {
      for picture in try Film(session.video(manifest)).pictures where manifest.startMs + picture.tick / 90 < next {
        let tick = (manifest.startMs - start) * 90 + picture.tick
        let shown = film.pictures.last { $0.tick <= tick }
        #expect(shown?.digest == picture.digest, "\(manifest.file) at tick \(picture.tick)")
      }
    }
    let lengthMs = session.index.durationMs
    for range in ranges(of: session, lengthMs: lengthMs, count: Extent.of(4, full: 20), seed: 48) {
      expect(try clip(session, range), isPart: range, of: film)
    }
  }

  @Test func bothEndsMayBeAbsent() throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let film = try film(of: session)
    let (file, lengthMs) = (scratch.path("clip.mp4"), session.index.durationMs)
    for (options, range) in [
      (["--from", "+2.5s"], 2_500..<lengthMs), (["--to-time", "2026-01-08T08:05:15.000Z"], 0..<2_660),
      (["--speed", "1"], 0..<lengthMs),
    ] {
      let result = try Tool.run(EncoderWorker.path, ["stitch", session.path, "--to", file] + options)
      #expect(result.status == 0, "\(result.errors)")
      expect(try Film(file), isPart: range, of: film)
    }
    #expect(try contents(file) == contents(scratch.path("exact-1fps.mp4")))
  }

  @Test func wholeFilmAtAnotherSpeedKeepsEveryPicture() throws {
    let session = try EncoderWorker.encode(Fixture("irregular-3fps"), into: scratch)
    let film = try film(of: session)
    for (speed, text): (Int64, String) in [(100, "0.1"), (333, "0.333"), (2_000, "2"), (99_999, "99.999")] {
      let file = scratch.path("clip.mp4")
      let result = try EncoderWorker.run("stitch", session.path, "--to", file, "--speed", text, "--json")
      #expect(result.status == 0, "\(result.errors)")
      #expect(result.text.contains("\"durationMs\":\(session.index.durationMs * 1_000 / speed),"))
      #expect(result.text.contains("\"speed\":\(text),"))
      expect(try Film(file), isPart: 0..<session.index.durationMs, of: film, speed: speed)
    }
  }

  @Test func boundsInGapsFollowTheRuleForGaps() throws {
    let session = try EncoderWorker.encode(Fixture("gap"), into: scratch)
    let gap = try #require(session.index.gaps.first)
    let start = session.index.startMs
    let inGap = gap.startMs - start + 1_000
    let (held, cut) = (try film(of: session), scratch.path("clip.mp4"))
    // The picture before the gap is held, and nothing was captured in it.
    let clip = try clip(session, inGap..<inGap + 1_000)
    expect(clip, isPart: inGap..<inGap + 1_000, of: held)
    #expect(clip.texts == [])
    func run(_ from: Int64, _ to: Int64) throws -> Tool.Result {
      try EncoderWorker.run(
        "stitch", session.path, "--to", cut, "--gaps", "cut", "--from", "\(start + from)", "--to-time", "\(start + to)")
    }
    // Without gaps the clip begins with the next capture, or ends with the last one before.
    let endMs = gap.endMs - start
    try #require(try run(inGap, endMs + 1_500).status == 0)
    expect(try Film(cut), isPart: endMs..<endMs + 1_500, of: held)
    try #require(try run(inGap - 2_500, inGap).status == 0)
    expect(try Film(cut), isPart: inGap - 2_500..<inGap - 1_000, of: held)
    let nothing = try run(inGap, inGap + 1_000)
    #expect(nothing.status == 65)
    #expect(nothing.errors.contains("nothing was recorded there"))
  }

  @Test func partThatShowsNothingIsRefusedWithTheBoundsOfTheSession() throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let (start, end) = (session.index.startMs, session.index.endMs)
    func run(_ options: String...) throws -> Tool.Result {
      try Tool.run(EncoderWorker.path, ["stitch", session.path, "--to", scratch.path("clip.mp4")] + options)
    }
    for (status, options): (Int32, [String]) in [
      (64, ["--from", "+3s", "--to-time", "+3s"]), (64, ["--from", "\(start + 1)", "--to-time", "\(start)"]),
      (65, ["--from", "\(end)"]), (65, ["--to-time", "\(start)"]), (65, ["--from", "+1000000s"]),
      (65, ["--from", "0", "--to-time", "1"]),
    ] {
      let result = try Tool.run(
        EncoderWorker.path, ["stitch", session.path, "--to", scratch.path("clip.mp4")] + options)
      #expect(result.status == status, "\(options): \(result.errors)")
      #expect(result.errors.contains("(\(start)) to ") && result.errors.contains("(\(end))"), "\(result.errors)")
    }
    for options in [
      ["--from", "noon"], ["--to-time", "-1"], ["--speed", "0"], ["--speed", "100001"], ["--speed", "1e1"],
      ["--speed", "0.0999"], ["--speed", ""], ["--format", "hls", "--from", "+1s"],
      ["--format", "hls", "--speed", "2"],
    ] {
      let result = try Tool.run(
        EncoderWorker.path, ["stitch", session.path, "--to", scratch.path("clip.mp4")] + options)
      #expect(result.status == 64, "\(options): \(result.errors)")
    }
    #expect(try names(in: scratch.path) == ["output"])
    // A part that is outside in part is shortened, with a note.
    let result = try run("--from", "1", "--to-time", "+1000000s", "--json")
    #expect(result.status == 0)
    #expect(result.errors.contains("begins at") && result.errors.contains("ends at"))
    #expect(result.text.contains("\"fromMs\":\(start)") && result.text.contains("\"toMs\":\(end)"))
  }

  @Test func onlySegmentsOfThePartAreRead() throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let range: Range<Int64> = 5_500..<9_500
    let file = scratch.path("clip.mp4")
    for manifest in [session.manifests[0], session.manifests[2]] {
      try FileManager.default.removeItem(atPath: session.video(manifest))
    }
    let result = try EncoderWorker.run("stitch", session.path, "--to", file, "--from", "+5.5s", "--to-time", "+9.5s")
    #expect(result.status == 0 && result.errors == "", "\(result.errors)")
    #expect(try Probe(file).streams[0].durationTs == 90 * Int64(range.count))
    #expect(try EncoderWorker.run("stitch", session.path, "--to", file, "--from", "+4.5s").status == 65)
  }

  /// A clip is a film like any other: a copy of all tracks keeps it, and it can be made a session again.
  @Test func clipSurvivesACopyAndAnImport() throws {
    let session = try EncoderWorker.encode(Fixture("irregular-3fps"), into: scratch)
    let range: Range<Int64> = 1_234..<6_543
    let film = try film(of: session)
    _ = try clip(session, range)
    try Tool.output(
      "ffmpeg", ["-v", "error", "-i", scratch.path("clip.mp4"), "-map", "0", "-c", "copy", scratch.path("copy.mp4")])
    expect(try Film(scratch.path("copy.mp4")), isPart: range, of: film)
    let result = try EncoderWorker.run(
      "reencode", scratch.path("clip.mp4"), "--output", scratch.path("again"), "--session", "part", "--quality",
      "balanced")
    #expect(result.status == 0, "\(result.errors)")
    let again = try PublishedSession(scratch.path("again/part"))
    let start = session.index.startMs
    let before = try #require(session.captured.last { $0.timeMs <= start + range.lowerBound })
    #expect(
      again.captured.map(\.timeMs)
        == session.captured.map(\.timeMs).filter { $0 >= before.timeMs && $0 < start + range.upperBound })
  }

  private func contents(_ file: String) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: file)) }
}
