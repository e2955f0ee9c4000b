import Foundation
import JSON
import TestSupport
import Testing

/// `pictures` writes the pictures of a session that changed, each named by its capture.
@Suite struct PicturesTests: PicturesSuite {
  private static let start = 1_767_859_512_340
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// Makes a session of grey pictures of 320×200, one a second, each with the squares of its number in white.
  private func session(_ squares: [[(x: Int, y: Int, side: Int)]], _ members: String = "") throws -> PublishedSession {
    _ = try scratch.directory("batch")
    let frames = try squares.enumerated().map { number, squares in
      var samples = [Int](repeating: 96, count: 3 * 320 * 200)
      for square in squares {
        for y in square.y..<square.y + square.side {
          for x in 3 * square.x..<3 * (square.x + square.side) { samples[y * 960 + x] = 255 }
        }
      }
      try scratch.file(
        "batch/\(number).png", PNGImage.file(width: 320, height: 200, depth: 8, kind: 2, samples: samples))
      return #"{"file":"\#(number).png","timeMs":\#(Self.start + 1_000 * number)}"#
    }
    let json = #"{"version":1,"session":"s","frames":[\#(frames.joined(separator: ","))]\#(members)}"#
    try scratch.file("batch/batch.json", Array(json.utf8))
    let result = try EncoderWorker.run("encode", scratch.path("batch"), "--output", scratch.path("output"))
    try #require(result.status == 0, "\(result.errors)")
    return try PublishedSession(scratch.path("output/s"))
  }

  // MARK: the choice

  /// The chosen pictures are those that differ, by another decoder and plain loops. This includes idle sessions of the corpus, and
  /// those in which somebody types.
  @Test(arguments: Fixture.all.filter { !["masks", "colour-bars"].contains($0.name) } + Fixture.corpus)
  func changedPicturesAreChosen(fixture: Fixture) throws {
    let session = try EncoderWorker.encode(fixture, into: scratch)
    let captured = session.manifests.flatMap { manifest in
      manifest.frames.filter { $0.status == "captured" }.map {
        (frame: $0, width: manifest.width, height: manifest.height)
      }
    }
    var last: CodedSamples?
    var wanted: [String] = []
    for (frame, width, height) in captured {
      let picture = try CodedSamples.jpegs([fixture.bytes(frame.source)], width: width, height: height)[0]
      if last.flatMap({ picture.changedArea(since: $0) }) != 0 { wanted.append(frame.source) }
      last = picture
    }
    let found = try pictures(session.path, ["--changed-only", "--max-side", "100"])
    #expect(found.map(\.source) == wanted)
    #expect(found.map(\.changedBlocks).dropFirst().allSatisfy { $0 != 0 })
  }

  @Test func optionsChoose() throws {
    let square = (x: 32, y: 32, side: 16)
    // Blocks that change: none, 1, 0, 4, 1 of 260.
    let session = try session([[], [square], [square], [(64, 64, 32), square], [(64, 64, 32)]])
    func chosen(_ options: String...) throws -> [Int64] {
      defer { try? FileManager.default.removeItem(atPath: scratch.path("pictures")) }
      return try pictures(session.path, options).map { ($0.unixMs - Int64(Self.start)) / 1_000 }
    }
    #expect(try chosen() == [0, 1, 2, 3, 4])
    #expect(try chosen("--changed-only") == [0, 1, 3, 4])
    #expect(try chosen("--min-change", "1.9") == [0, 3])
    #expect(try chosen("--max", "2") == [0, 3])
    #expect(try chosen("--max-tokens", "172") == [0, 3])
    #expect(try chosen("--from", "+1.5s", "--to-time", "+3s") == [1, 2])
    let all = try pictures(session.path, ["--changed-only"])
    #expect(all.map(\.changedBlocks) == [nil, 1, 4, 1] && all.allSatisfy { $0.blocks == 260 && $0.tokens == 86 })
    #expect(all.map(\.changedShare) == [nil, 0.0038, 0.0154, 0.0038])
    // The third picture equals the second one.
    #expect(all.map(\.holdMs) == [1_000, 2_000, 1_000, 1_000])
    let refused = try EncoderWorker.run(
      "pictures", session.path, "--to", scratch.path("few"), "--max-tokens", "85")
    #expect(refused.status == 64 && refused.errors.contains("a picture has 86 tokens, more than the limit of 85"))
    #expect(try !names(in: scratch.path).contains { $0.hasPrefix("few") })
  }

  /// Segments of earlier versions tell no changes: the pictures themselves are compared.
  @Test func sessionOfAnEarlierVersionIsCompared() throws {
    let square = (x: 32, y: 32, side: 32)
    let session = try session([[], [], [square], [square], [square], [square], [square], [], []])
    for file in try names(in: session.path) where file.wholeMatch(of: #/segment-\d+\.json/#) != nil {
      var manifest = try SegmentManifestJSON(session.path + "/" + file)
      manifest["frames"] = .array(
        try manifest.frames.map { frame in
          var members = frame.object ?? [:]
          members["changedBlocks"] = nil
          return .object(members)
        })
      try manifest.write(to: session.path + "/" + file)
    }
    let found = try pictures(session.path, ["--changed-only"])
    let seconds = found.map { ($0.unixMs - Int64(Self.start)) / 1_000 }
    // The picture after 5 seconds opens a segment: it may be coded otherwise than the one before.
    #expect(seconds.filter { $0 != 5 } == [0, 2, 7])
    #expect(found.allSatisfy { $0.changedBlocks == nil })
    #expect(found[1].regions == [PictureLine.Region(x: 32, y: 32, width: 32, height: 32)])
    #expect(
      try pictures(session.path, to: "two", ["--max", "3"]).map { ($0.unixMs - Int64(Self.start)) / 1_000 } == [
        0, 2, 7,
      ])
  }

  // MARK: the facts of a picture

  @Test func linesTellWhereAndWhatHappened() throws {
    let (one, two) = ((x: 20, y: 20, side: 20), (x: 240, y: 150, side: 10))
    let events = [(500, "down", 32, 48), (550, "move", 33, 48), (1_200, "up", 64, 96), (2_100, "down", 318, 198)]
    let list = events.map { #"{"timeMs":\#(Self.start + $0.0),"type":"\#($0.1)","x":\#($0.2),"y":\#($0.3)}"# }
    let session = try session([[], [one, two], [one, two]], #","events":[\#(list.joined(separator: ","))]"#)
    let found = try pictures(session.path, ["--changed-only", "--max-side", "160"])
    try #require(found.count == 2)
    #expect(found.map(\.instant) == ["2026-01-08T08:05:12.340Z", "2026-01-08T08:05:13.340Z"])
    #expect(found.map(\.file) == ["2026-01-08T08-05-12.340Z.jpg", "2026-01-08T08-05-13.340Z.jpg"])
    #expect(found.allSatisfy { ($0.width, $0.height, $0.session) == (160, 100, "s") && $0.notes.isEmpty })
    #expect(found.map(\.holdMs) == [1_000, 2_000] && found.map(\.shownFromMs) == found.map(\.unixMs))
    #expect(found[0].regions == nil)
    // Blocks of the capture, in pixels of the written picture: half of them.
    #expect(
      found[1].regions == [
        PictureLine.Region(x: 8, y: 8, width: 16, height: 16), PictureLine.Region(x: 120, y: 72, width: 8, height: 8),
      ])
    let (first, second) = (
      [PictureLine.Event(unixMs: Self.start + 500, type: "down", pointer: 0, x: 16, y: 24)],
      [
        PictureLine.Event(unixMs: Self.start + 1_200, type: "up", pointer: 0, x: 32, y: 48),
        PictureLine.Event(unixMs: Self.start + 2_100, type: "down", pointer: 0, x: 159, y: 99),
      ]
    )
    #expect(found.map(\.events) == [first, second])
  }

  @Test func notesAreTold() throws {
    let session = try EncoderWorker.encode(Fixture("masks"), into: scratch)
    #expect(
      try pictures(session.path).map(\.notes) == [[], ["blacked out: mask 0 is not a finite rectangle"], []])
  }
}
