import Foundation
import TestSupport
import Testing

/// Sessions that a worker published in full range, up to November 2026 (`fixtures/published/full-range`: colour bars):
/// unchanged, and continued in limited range.
@Suite struct FullRangeTests {
  private let scratch: ScratchDirectory
  private let session: String

  init() throws {
    scratch = try ScratchDirectory()
    session = try scratch.directory("output") + "/full-range"
    try FileManager.default.copyItem(atPath: Fixture("published/full-range").path, toPath: session)
  }

  private func range(of video: String) throws -> String? { try Probe(video).streams.first?.colorRange }

  /// Returns the range that a film's parameter sets tell of each picture.
  private func ranges(ofPictures film: String) throws -> [String] {
    let lines = try Tool.output(
      "ffprobe",
      ["-v", "error", "-select_streams", "v", "-show_entries", "frame=color_range", "-of", "csv=p=0", film])
    return String(decoding: lines, as: UTF8.self).split(separator: "\n").map { String($0.prefix { $0 != "," }) }
  }

  /// Returns the pictures of a film, each read in its own range.
  ///
  /// Behind full range, FFmpeg's decoder keeps the pixel format that implies it (`yuvj420p`) and reports limited range
  /// beside it. The filters of FFmpeg 7.1 and 9.0 believe the format, those of 5.1 the range: this filter sets the range.
  private func pictures(of film: String, in ranges: [String], like first: Pixels) throws -> [Pixels] {
    let readings = try Dictionary(
      uniqueKeysWithValues: Set(ranges).map { range in
        let filter = "scale=in_range=pc:out_range=pc,format=yuv420p,setrange=\(range)"
        return (range, try Pixels.decode(film, width: first.width, height: first.height, options: ["-vf", filter]))
      })
    return ranges.indices.compactMap { index in
      readings[ranges[index]].flatMap { $0.indices.contains(index) ? $0[index] : nil }
    }
  }

  private typealias Ranged = (range: String, picture: Pixels)

  /// Returns the pictures that differ from the one before: a film repeats the picture on screen.
  private func changes(_ pictures: [Ranged]) -> [Ranged] {
    pictures.reduce(into: []) { changes, next in
      if let last = changes.last, last.range == next.range, last.picture.bytes == next.picture.bytes { return }
      changes.append(next)
    }
  }

  /// Compares what a film shows with pictures in full range and those behind them in limited range.
  private func expectFilm(_ film: String, shows full: [Pixels], then limited: [Pixels]) throws {
    let ranges = try ranges(ofPictures: film)
    let pictures = try pictures(of: film, in: ranges, like: try #require(full.first))
    try #require(pictures.count == ranges.count)
    let shown = changes(Array(zip(ranges, pictures)))
    let expected = changes(full.map { ("pc", $0) } + limited.map { ("tv", $0) })
    #expect(shown.map(\.range) == expected.map(\.range))
    #expect(Set(ranges) == ["pc", "tv"])
    #expect(zip(shown, expected).allSatisfy { $0.0.picture.difference(to: $0.1.picture) < 1.5 })
  }

  private func run(_ arguments: String...) throws {
    let result = try Tool.run(EncoderWorker.path, arguments)
    #expect(result.status == 0, "\(arguments): \(result.text)\(result.errors)")
  }

  /// Adds the same colours, from an instant on.
  private func goOn(atMs start: Int) throws {
    let batch = try scratch.directory("batch")
    for (index, name) in try names(in: Fixture("colour-bars").path).filter({ !$0.hasSuffix(".json") }).sorted()
      .enumerated()
    {
      let suffix = name.split(separator: ".").last ?? ""
      try FileManager.default.copyItem(
        atPath: Fixture("colour-bars").path + "/" + name,
        toPath: batch + "/\(start + 1_000 * index).\(suffix)")
    }
    try run("encode", batch, "--output", scratch.path("output"), "--session", "full-range")
  }

  @Test func fullRangeSessionIsVerifiedStitchedServedAndReencoded() throws {
    try run("verify", session)
    try run("stitch", session, "--to", scratch.path("film.mp4"))
    try run("stitch", session, "--to", scratch.path("hls"), "--format", "hls")
    try run("pictures", "--sheet", session, "--to", scratch.path("sheet.png"))
    try run("reencode", session, "--output", scratch.path("anew"), "--quality", "sharp")
    let (before, after) = (try PublishedSession(session), try PublishedSession(scratch.path("anew/full-range")))
    let (old, new) = (try before.pictures().flatMap { $0 }, try after.pictures().flatMap { $0 })
    #expect(old.count == new.count)
    #expect(zip(old, new).allSatisfy { $0.difference(to: $1) < 1.5 })
    #expect(try after.manifests.allSatisfy { try range(of: after.video($0)) == "tv" })
    #expect(try before.manifests.allSatisfy { try range(of: before.video($0)) == "pc" })
  }

  @Test func fullRangeSessionContinuesInLimitedRange() throws {
    try goOn(atMs: 1_767_859_572_340)
    try run("verify", session)
    let mixed = try PublishedSession(session)
    let ranges = try mixed.manifests.map { try range(of: mixed.video($0)) }
    let all = try mixed.pictures()
    func pictures(in range: String) -> [Pixels] { zip(ranges, all).filter { $0.0 == range }.flatMap(\.1) }
    let (old, new) = (pictures(in: "pc"), pictures(in: "tv"))
    #expect(!old.isEmpty && old.count == new.count)
    #expect(zip(old, new).allSatisfy { $0.difference(to: $1) < 1.5 })
    try run("stitch", session, "--to", scratch.path("film.mp4"))
    try expectFilm(scratch.path("film.mp4"), shows: old, then: new)
    try run("stitch", session, "--to", scratch.path("hls"), "--format", "hls")
    try run("reencode", session, "--output", scratch.path("anew"), "--quality", "sharp")
    let anew = try PublishedSession(scratch.path("anew/full-range"))
    #expect(try anew.manifests.allSatisfy { try range(of: anew.video($0)) == "tv" })
    #expect(zip(try anew.pictures().flatMap { $0 }, old + new).allSatisfy { $0.difference(to: $1) < 1.5 })
  }

  /// Of the film's second 5 seconds, two are in full range and three in limited range.
  @Test func filmThatChangesRangeInsideASegmentIsReencodedWithItsColours() throws {
    try goOn(atMs: 1_767_859_519_340)
    let all = try PublishedSession(session).pictures().flatMap { $0 }
    try run("stitch", session, "--to", scratch.path("film.mp4"))
    try #require(all.count == 14)
    try expectFilm(scratch.path("film.mp4"), shows: Array(all.prefix(7)), then: Array(all.suffix(7)))
    try run("reencode", scratch.path("film.mp4"), "--output", scratch.path("anew"), "--quality", "sharp")
    let anew = try PublishedSession(scratch.path("anew/film")).pictures().flatMap { $0 }
    #expect(anew.count == all.count)
    #expect(zip(anew, all).allSatisfy { $0.difference(to: $1) < 1.5 })
  }
}
