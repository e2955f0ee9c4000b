import Foundation
import TestSupport
import Testing

/// `run --thumbnails`: the sprites and the track that players show while a viewer seeks.
@Suite struct ThumbnailTests {
  private static let startMs: Int64 = 1_767_859_512_340

  /// The track as webvtt-py and Pillow read it.
  private struct Cue: Decodable, Equatable {
    let startMs: Int64
    let endMs: Int64
    let width: Int
    let height: Int
    /// The frame number that the fixture's coloured patches encode.
    let number: Int
    let file: String

    /// Decodes a list: start, end, width, height, number, file.
    init(from decoder: any Decoder) throws {
      var row = try decoder.unkeyedContainer()
      (startMs, endMs) = (try row.decode(Int64.self), try row.decode(Int64.self))
      (width, height) = (try row.decode(Int.self), try row.decode(Int.self))
      (number, file) = (try row.decode(Int.self), try row.decode(String.self))
      try #require(row.isAtEnd)
    }
  }

  private func cues(_ session: String) throws -> [Cue] {
    let text = try Pillow.run("show_cues.py", [session + "/thumbnails/thumbnails.vtt"])
    return try JSONDecoder().decode([Cue].self, from: Data(text.utf8))
  }

  private func times(_ session: String) throws -> [[Int64]] { try cues(session).map { [$0.startMs, $0.endMs] } }

  @Test(arguments: ["jittered", "irregular-3fps", "gap", "rotation", "odd-size", "on-change", "single-frame"])
  func eachCueShowsItsFrame(fixture: String) throws {
    let spool = try TestSpool()
    try spool.add(fixture)
    try #require(try spool.drain("--thumbnails").status == 0)
    let session = try PublishedSession(spool.output + "/" + fixture)
    let cues = try cues(session.path)
    let frames = session.manifests.flatMap { manifest in
      zip(manifest.frames, manifest.offsetsMs).map { (frame: $0, shownMs: manifest.startMs + $1, of: manifest) }
    }
    try #require(cues.count == frames.count)
    let captures = session.captured.map(\.timeMs)
    for (cue, (frame, shownMs, manifest)) in zip(cues, frames) {
      #expect(cue.startMs == shownMs - session.index.startMs)
      #expect(cue.endMs == cue.startMs + frame.holdMs)
      #expect(cue.number == captures.firstIndex(of: frame.timeMs))
      #expect(max(cue.width, cue.height) == 160)
      #expect(abs(cue.width * manifest.height - cue.height * manifest.width) <= max(manifest.width, manifest.height))
      #expect(cue.file.hasPrefix("segment-\(manifest.startMs)-"))
    }
    // The directory has one sprite for each segment and no other image.
    let files = try names(in: session.path + "/thumbnails")
    #expect(files == Set(cues.map(\.file)).sorted() + ["thumbnails.vtt"])
    #expect(files.count == session.manifests.count + 1)
    #expect(try EncoderWorker.run("verify", session.path).status == 0)
    #expect(try spool.isAtRest)
  }

  @Test func manyFramesFillSeveralRowsOfASprite() throws {
    let spool = try TestSpool()
    let draft = spool.path + "/tmp/many"
    try FileManager.default.createDirectory(atPath: draft, withIntermediateDirectories: true)
    // More frames than a sprite holds pictures.
    for number in 0..<120 {
      let source = Fixture("exact-1fps").path + String(format: "/%04d.jpg", number / 10)
      let startMs = Self.startMs + Int64(number) * 20
      try FileManager.default.copyItem(atPath: source, toPath: draft + "/\(startMs).jpg")
    }
    try FileManager.default.moveItem(atPath: draft, toPath: spool.path + "/incoming/many")
    try #require(try spool.drain("--thumbnails").status == 0)
    let cues = try cues(spool.output + "/many")
    #expect(cues.count == 120)
    #expect(Set(cues.map(\.file)).count == 1)
    for (index, cue) in cues.enumerated() {
      #expect(cue.startMs == Int64(index) * 20)
      #expect(cue.number == index / 2 * 2 / 10)
    }
    let sprite = try ImageProbe(spool.output + "/many/thumbnails/" + cues[0].file)
    #expect((sprite.width, sprite.height) == (960, 960))
  }

  /// The worker extends the track with each batch. At an early or late batch, the last picture is shown until the next
  /// one.
  @Test func theTrackGrowsWithTheSession() throws {
    let spool = try TestSpool()
    let session = spool.output + "/walk"
    let expected: [[[Int64]]] = [
      [[0, 1_000], [1_000, 2_000]],
      // The batch is 300 ms late.
      [[0, 1_000], [1_000, 2_300], [2_300, 3_300], [3_300, 4_300]],
      // The batch is 200 ms early.
      [[0, 1_000], [1_000, 2_300], [2_300, 3_300], [3_300, 4_100], [4_100, 5_100], [5_100, 6_100]],
      // The batch follows a gap.
      [
        [0, 1_000], [1_000, 2_300], [2_300, 3_300], [3_300, 4_100], [4_100, 5_100], [5_100, 6_100],
        [26_100, 27_100], [27_100, 28_100],
      ],
    ]
    var sprites: [String: FileState] = [:]
    for (number, startMs) in [0, 2_300, 4_100, 26_100].enumerated() {
      try spool.addSmall("walk@\(number)", startMs: Self.startMs + Int64(startMs))
      try #require(try spool.drain("--thumbnails").status == 0)
      #expect(try times(session) == expected[number])
      let now = try snapshot(of: session + "/thumbnails").filter { $0.key.hasSuffix(".jpg") }
      // The worker writes each sprite once.
      #expect(sprites.allSatisfy { now[$0.key] == $0.value })
      #expect(now.count == number + 1)
      sprites = now
    }
    // A worker without `--thumbnails` extends an existing track and starts no new one.
    try spool.addSmall("walk@5", startMs: Self.startMs + 30_000)
    try spool.addSmall("other@5", startMs: Self.startMs)
    #expect(try spool.drain().status == 0)
    #expect(try times(session).suffix(2) == [[30_000, 31_000], [31_000, 32_000]])
    #expect(try !names(in: spool.output + "/other").contains("thumbnails"))
    // The worker writes deleted files again with the same bytes.
    let before = try snapshot(of: session + "/thumbnails").mapValues(\.bytes)
    try FileManager.default.removeItem(atPath: session + "/thumbnails")
    try spool.addSmall("walk@5", startMs: Self.startMs + 30_000)
    #expect(try spool.drain("--thumbnails").status == 0)
    #expect(try snapshot(of: session + "/thumbnails").mapValues(\.bytes) == before)
  }

  /// A batch from before the session's start shifts all later cues. The worker writes no sprite again.
  @Test func earlierBatchMovesTheStart() throws {
    let spool = try TestSpool()
    let session = spool.output + "/walk"
    try spool.addSmall("walk@2", startMs: Self.startMs + 10_000)
    #expect(try spool.drain("--thumbnails").status == 0)
    let before = try snapshot(of: session + "/thumbnails").filter { $0.key.hasSuffix(".jpg") }
    try spool.addSmall("walk@1", startMs: Self.startMs, frames: [2, 3])
    #expect(try spool.drain("--thumbnails").status == 0)
    #expect(try times(session) == [[0, 1_000], [1_000, 2_000], [10_000, 11_000], [11_000, 12_000]])
    #expect(try cues(session).map(\.number) == [2, 3, 0, 1])
    let after = try snapshot(of: session + "/thumbnails")
    #expect(before.allSatisfy { after[$0.key] == $0.value })
  }

  /// The track leaves out a damaged segment and shows the later ones.
  @Test func aDamagedSegmentHasNoCue() throws {
    let spool = try TestSpool()
    let session = spool.output + "/walk"
    try spool.addSmall("walk@1", startMs: Self.startMs)
    #expect(try spool.drain().status == 0)
    try Data([1]).write(to: URL(fileURLWithPath: session + "/segment-\(Self.startMs).mp4"))
    for number in 1...3 {
      try spool.addSmall("walk@\(number + 1)", startMs: Self.startMs + Int64(number) * 2_000)
      #expect(try spool.drain("--thumbnails", verifying: false).status == 0)
      #expect(try times(session) == (2..<2 + 2 * Int64(number)).map { [$0 * 1_000, $0 * 1_000 + 1_000] })
    }
    #expect(try spool.isAtRest)
  }

  @Test func linkInPlaceOfTheDirectoryIsNotFollowed() throws {
    let spool = try TestSpool()
    try spool.addSmall("walk@1", startMs: Self.startMs)
    #expect(try spool.drain().status == 0)
    let elsewhere = try spool.scratch.directory("elsewhere")
    try FileManager.default.createSymbolicLink(
      atPath: spool.output + "/walk/thumbnails", withDestinationPath: elsewhere)
    try spool.addSmall("walk@2", startMs: Self.startMs + 2_000)
    _ = try spool.drain("--thumbnails")
    #expect(try names(in: elsewhere).isEmpty)
  }

  /// `stitch` and `pictures --sheet` write no file into the thumbnails' directory.
  @Test func filmOrSheetInTheThumbnailsDirectoryIsRefused() throws {
    let spool = try TestSpool()
    try spool.addSmall("walk@1", startMs: Self.startMs)
    #expect(try spool.drain("--thumbnails").status == 0)
    let session = spool.output + "/walk"
    let before = try snapshot(of: session)
    #expect(try EncoderWorker.run("stitch", session, "--to", session + "/thumbnails/film.mp4").status == 64)
    #expect(
      try EncoderWorker.run("pictures", "--sheet", session, "--to", session + "/thumbnails/sheet.png").status == 64)
    #expect(try snapshot(of: session) == before)
  }
}
