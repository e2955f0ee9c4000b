import Foundation
import JSON
import TestSupport
import Testing

/// `pictures` writes the pictures of a session that changed, each named by its capture.
@Suite struct PicturesTests {
  private static let start = 1_767_859_512_340
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private struct Line: Decodable, Equatable {
    struct Region: Decodable, Equatable { let x, y, width, height: Int }
    struct Event: Decodable, Equatable {
      let unixMs: Int
      let type: String
      let pointer, x, y: Int
    }

    let file, session, instant, source: String
    let unixMs, shownFromMs, holdMs: Int64
    let width, height, blocks, tokens: Int
    let changedBlocks: Int?
    let changedShare: Double?
    let regions: [Region]?
    let events: [Event]
    let notes: [String]
    let image: String?
  }

  private struct Summary: Decodable {
    let file, session: String
    let pictures, captures, tokens, bytes: Int
  }

  private func pictures(_ path: String, to target: String = "pictures", _ options: [String] = []) throws -> [Line] {
    let run = try Tool.run(
      EncoderWorker.path, ["pictures", path, "--to", scratch.path(target), "--json"] + options)
    try #require(run.status == 0, "\(run.errors)")
    let list = target.hasSuffix(".jsonl") ? scratch.path(target) : scratch.path(target + "/pictures.jsonl")
    let lines = try lines(Data(contentsOf: URL(fileURLWithPath: list)))
    let summary = try run.json(as: Summary.self)
    #expect(summary.pictures == lines.count && summary.tokens == lines.reduce(0) { $0 + $1.tokens })
    #expect(summary.file.hasSuffix("/" + target))
    return lines
  }

  private func lines(_ text: Data) throws -> [Line] {
    try text.split(separator: UInt8(ascii: "\n")).map { try JSONDecoder().decode(Line.self, from: Data($0)) }
  }

  private func bytes(_ name: String) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: scratch.path(name))) }

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
    #expect(found[1].regions == [Line.Region(x: 32, y: 32, width: 32, height: 32)])
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
        Line.Region(x: 8, y: 8, width: 16, height: 16), Line.Region(x: 120, y: 72, width: 8, height: 8),
      ])
    let (first, second) = (
      [Line.Event(unixMs: Self.start + 500, type: "down", pointer: 0, x: 16, y: 24)],
      [
        Line.Event(unixMs: Self.start + 1_200, type: "up", pointer: 0, x: 32, y: 48),
        Line.Event(unixMs: Self.start + 2_100, type: "down", pointer: 0, x: 159, y: 99),
      ]
    )
    #expect(found.map(\.events) == [first, second])
  }

  @Test func notesAreTold() throws {
    let session = try EncoderWorker.encode(Fixture("masks"), into: scratch)
    #expect(
      try pictures(session.path).map(\.notes) == [[], ["blacked out: mask 0 is not a finite rectangle"], []])
  }

  // MARK: the forms

  @Test func everyFormHasThePicturesOfFrame() throws {
    let session = try EncoderWorker.encode(Fixture("rotation"), into: scratch)
    for format in ["jpg", "png"] {
      let folder = try pictures(session.path, to: format, ["--format", format])
      let inline = try pictures(session.path, to: format + ".jsonl", ["--format", format])
      try #require(folder.count == 8 && inline.count == 8)
      let zipped = try EncoderWorker.run(
        "pictures", session.path, "--to", scratch.path("\(format).zip"), "--format", format)
      #expect(zipped.status == 0)
      try Tool.output(
        Tool.python,
        [
          "-c", "import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2])",
          scratch.path("\(format).zip"), scratch.path("unpacked-" + format),
        ])
      #expect(
        try names(in: scratch.path(format)) == (folder.map(\.file) + ["pictures.jsonl"]).sorted())
      #expect(try names(in: scratch.path("unpacked-" + format)) == names(in: scratch.path(format)))
      for (line, other) in zip(folder, inline) {
        let at = ["--at", "\(line.unixMs)", "--to", scratch.path("frame." + format)]
        let shown = try Tool.run(EncoderWorker.path, ["frame", session.path] + at)
        #expect(shown.status == 0, "\(shown.errors)")
        let image = try bytes("frame." + format)
        #expect(try bytes("\(format)/\(line.file)") == image && bytes("unpacked-\(format)/\(line.file)") == image)
        let kind = format == "png" ? "png" : "jpeg"
        #expect(other.image == "data:image/\(kind);base64,\(image.base64EncodedString())")
        #expect((line.width, line.height) == (other.width, other.height) && line.file == other.file)
      }
    }
  }

  /// The names are capture times that `encode` reads.
  @Test func folderIsABatch() throws {
    let session = try EncoderWorker.encode(Fixture("jittered"), into: scratch)
    let found = try pictures(session.path)
    try FileManager.default.removeItem(atPath: scratch.path("pictures/pictures.jsonl"))
    let result = try EncoderWorker.run(
      "encode", scratch.path("pictures"), "--output", scratch.path("again"), "--session", "again")
    try #require(result.status == 0, "\(result.errors)")
    #expect(try PublishedSession(scratch.path("again/again")).captured.map(\.timeMs) == found.map(\.unixMs))
  }

  // MARK: the target

  @Test func targetThatIsTakenIsRefused() throws {
    let session = try EncoderWorker.encode(Fixture("single-frame"), into: scratch)
    try scratch.file("full.txt", [1])
    _ = try scratch.directory("full")
    try scratch.file("full/note", [1])
    _ = try scratch.directory("empty")
    for (target, message) in [
      ("full", "it is no empty directory"), ("full.txt", "it is no empty directory"),
      ("output/single-frame/pictures", "a published session"), ("none/pictures", "no directory"),
    ] {
      let result = try EncoderWorker.run("pictures", session.path, "--to", scratch.path(target))
      #expect(result.status == 64 && result.errors.contains(message), "\(target): \(result.errors)")
    }
    #expect(try pictures(session.path, to: "empty").count == 1)
    #expect(try names(in: scratch.path) == ["empty", "full", "full.txt", "output"])
    #expect(try names(in: scratch.path("full")) == ["note"])
  }

  /// `delete` removes a session, and no pictures beside it.
  @Test func targetInTheOutputOfTheSessionIsRefused() throws {
    let session = try EncoderWorker.encode(Fixture("single-frame"), into: scratch)
    _ = try scratch.directory("output/own")
    _ = try scratch.directory("output-2")
    try FileManager.default.createSymbolicLink(
      atPath: scratch.path("link"), withDestinationPath: scratch.path("output"))
    let before = try names(in: scratch.path("output"))
    for target in [
      "output/pictures", "output/p.zip", "output/p.jsonl", "output/own/pictures", "link/pictures", "output/own",
    ] {
      let result = try EncoderWorker.run("pictures", session.path, "--to", scratch.path(target))
      #expect(result.status == 64 && result.errors.contains("in the output of the session"), "\(result.errors)")
    }
    // A path from the working directory.
    let words = ["pictures", "output/single-frame", "--to", "output/pictures"]
    #expect(try Tool.run(EncoderWorker.path, words, in: scratch.url, verifying: false).status == 64)
    #expect(try names(in: scratch.path("output")) == before && names(in: scratch.path("output/own")) == [])
    #expect(try pictures(session.path, to: "output-2/pictures").count == 1)
  }

  @Test func leftoversOfAKilledRunAreReplacedAndNothingElse() throws {
    let session = try EncoderWorker.encode(Fixture("single-frame"), into: scratch)
    _ = try scratch.directory("pictures.part")
    try scratch.file("pictures.part/2026-01-08T08-05-12.340Z.jpg", [1])
    try scratch.file("pictures.part/2026-01-08T08-05-12.340Z-4.png", [1])
    try scratch.file("pictures.part/pictures.jsonl", [1])
    #expect(try pictures(session.path).count == 1)
    #expect(try names(in: scratch.path) == ["output", "pictures"])
    // Images of the user are no leftovers.
    for (number, other) in ["diary.txt", "holiday.jpg", "2026-01-08.png"].enumerated() {
      let own = "2026-01-08T08-05-12.340Z.jpg"
      _ = try scratch.directory("\(number).part")
      try scratch.file("\(number).part/\(other)", [1])
      try scratch.file("\(number).part/\(own)", [1])
      let result = try EncoderWorker.run("pictures", session.path, "--to", scratch.path("\(number)"))
      #expect(result.status == 64 && result.errors.contains("other files, such as '\(other)'"), "\(result.errors)")
      #expect(try names(in: scratch.path("\(number).part")) == [own, other].sorted())
    }
  }

  @Test func damagedSessionLeavesNothing() throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    try FileManager.default.removeItem(atPath: session.video(session.manifests[1]))
    for target in ["pictures", "pictures.zip", "pictures.jsonl"] {
      let result = try EncoderWorker.run("pictures", session.path, "--to", scratch.path(target))
      #expect(result.status == 65 && result.errors.contains(session.manifests[1].file), "\(result.errors)")
    }
    #expect(try names(in: scratch.path) == ["output"])
  }

  @Test(arguments: [
    ["--min-change", "0"], ["--min-change", "101"], ["--max", "0"], ["--max-side", "15"], ["--from", "noon"],
    ["--to", "film.mp4"],
  ])
  func wrongUsage(options: [String]) throws {
    let target = options[0] == "--to" ? [] : ["--to", scratch.path("pictures")]
    let result = try Tool.run(EncoderWorker.path, ["pictures", scratch.path("s")] + target + options)
    #expect(result.status == 64, "\(result.errors)")
  }
}
