import Foundation
import TestSupport
import Testing

/// The masks that manifests and lines list are those of the batch, and what the pictures show.
@Suite struct PictureMaskTests: PicturesSuite {
  private typealias Mask = PublishedSession.Manifest.Mask
  private static let start: Int64 = 1_767_859_512_340
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// A mask of 20, 200.5 with 100.2×40 pixels, a blackout, and no mask.
  private static let fixture: [[Mask]?] = [
    [Mask(x: 20, y: 200, width: 101, height: 41)], [Mask(x: 0, y: 0, width: 180, height: 320)], nil,
  ]
  /// The same in pictures of half the size.
  private static let halves: [[Mask]?] = [
    [Mask(x: 10, y: 100, width: 51, height: 21)], [Mask(x: 0, y: 0, width: 90, height: 160)], nil,
  ]

  private func masks(_ session: PublishedSession) -> [[Mask]?] { session.manifests.flatMap(\.frames).map(\.masks) }

  /// Expects one colour under a mask, some pixels inside of its edge: the codec rings there.
  private func expectUniform(_ mask: Mask, in picture: Pixels, _ what: String) {
    let (columns, rows) = (mask.x + 8..<mask.x + mask.width - 8, mask.y + 8..<mask.y + mask.height - 8)
    for channel in 0..<3 {
      let samples = rows.flatMap { y in columns.map { x in picture.bytes[3 * (y * picture.width + x) + channel] } }
      #expect(samples.allSatisfy { $0 <= 12 }, "\(what): \(mask)")
    }
  }

  @Test func listedMasksAreThoseOfTheBatchAndOfThePictures() throws {
    let session = try EncoderWorker.encode(Fixture("masks"), into: scratch)
    #expect(masks(session) == Self.fixture)
    for (target, options, wanted, size) in [
      ("whole", [], Self.fixture, (180, 320)), ("half", ["--max-side", "160"], Self.halves, (90, 160)),
    ] {
      let lines = try pictures(session.path, to: target, ["--image-format", "png"] + options)
      #expect(lines.map(\.masks) == wanted)
      for line in lines {
        let image = try Pixels.decode(scratch.path("\(target)/\(line.file)"), width: size.0, height: size.1)[0]
        for mask in line.masks ?? [] { expectUniform(mask, in: image, line.file) }
      }
    }
  }

  @Test func reencodingScalesThem() throws {
    let session = try EncoderWorker.encode(Fixture("masks"), into: scratch)
    for (output, options, wanted) in [("same", [], Self.fixture), ("half", ["--max-side", "160"], Self.halves)] {
      let result = try Tool.run(
        EncoderWorker.path,
        ["reencode", session.path, "--output", scratch.path(output), "--quality", "small"] + options)
      try #require(result.status == 0, "\(result.errors)")
      #expect(try masks(PublishedSession(scratch.path(output + "/masks"))) == wanted)
    }
    // A finished film tells nothing of masks.
    let film = scratch.path("film.mp4")
    try #require(try EncoderWorker.run("stitch", session.path, "--to", film).status == 0)
    let result = try EncoderWorker.run(
      "reencode", film, "--output", scratch.path("again"), "--session", "film", "--quality", "balanced")
    try #require(result.status == 0, "\(result.errors)")
    #expect(try masks(PublishedSession(scratch.path("again/film"))).allSatisfy { $0 == nil })
  }

  /// Makes a session of black pictures of 40×30, one a second, with these members.
  private func session(_ frames: [String], _ members: String = "") throws -> PublishedSession {
    let samples = [Int](repeating: 0, count: 3 * 40 * 30)
    _ = try scratch.directory("batch")
    let black = PNGImage.file(width: 40, height: 30, depth: 8, kind: 2, samples: samples)
    let list = try frames.enumerated().map { index, members in
      // A batch lists each file once.
      try scratch.file("batch/black-\(index).png", black)
      let members = members.replacing("black.png", with: "black-\(index).png")
      return #"{"timeMs":\#(Self.start + 1_000 * Int64(index)),\#(members)}"#
    }
    let json = #"{"version":1,"session":"s","frames":[\#(list.joined(separator: ","))]\#(members)}"#
    try scratch.file("batch/batch.json", Array(json.utf8))
    let result = try EncoderWorker.run("encode", scratch.path("batch"), "--output", scratch.path("output"))
    try #require(result.status == 0, "\(result.errors)")
    return try PublishedSession(scratch.path("output/s"))
  }

  private func mask(_ x: Double, _ y: Double, _ width: Double, _ height: Double) -> String {
    #"{"x":\#(x),"y":\#(y),"width":\#(width),"height":\#(height)}"#
  }

  /// Equal pictures may have other masks: each frame has its own.
  @Test func eachFrameHasItsOwn() throws {
    let file = #""file":"black.png""#
    let one = #"\#(file),"masks":[\#(mask(1.25, 2, 3, 4.25)),\#(mask(30, 20, 3, 3))]"#
    let session = try session([file, one, one, file], #","scale":2"#)
    // In pixels of the picture: twice as much. The second mask is outside of it.
    let wanted = [Mask(x: 2, y: 4, width: 7, height: 9)]
    #expect(masks(session) == [nil, wanted, wanted, nil])
    #expect(session.manifests.flatMap(\.frames).map(\.changedBlocks) == [nil, 0, 0, 0])
  }

  /// An equal picture that is left out may have other masks while the one before stays.
  @Test func lineHasTheMasksOfItsWholeHold() throws {
    let file = #""file":"black.png""#
    let session = try session([
      file, #"\#(file),"masks":[\#(mask(1, 2, 3, 4))]"#,
      #"\#(file),"masks":[\#(mask(1, 2, 3, 4)),\#(mask(5, 6, 7, 8))]"#,
    ])
    let wanted = [Mask(x: 1, y: 2, width: 3, height: 4), Mask(x: 5, y: 6, width: 7, height: 8)]
    #expect(try pictures(session.path, to: "changed", ["--changed-only"]).map(\.masks) == [wanted])
    #expect(try pictures(session.path, to: "all").map(\.masks) == [nil, [wanted[0]], wanted])
  }

  @Test func masksOfLayersAreThere() throws {
    let layer = #"{"file":"black.png","x":30,"y":-10,"width":20,"height":15,"masks":[\#(mask(2, 3, 50, 10))]}"#
    let frame = #""width":40,"height":30,"layers":[\#(layer)],"masks":[\#(mask(0, 0, 5, 5))]"#
    #expect(
      try masks(session([frame])) == [[Mask(x: 0, y: 0, width: 5, height: 5), Mask(x: 32, y: 0, width: 8, height: 3)]])
  }

  /// A picture that stays is in several segments, with its masks in each.
  @Test func continuedPictureKeepsThem() throws {
    let session = try session(
      [#""file":"black.png","masks":[\#(mask(1, 1, 2, 2))]"#],
      #","capture":"onChange","endMs":\#(Self.start + 12_000)"#)
    #expect(masks(session) == Array(repeating: [Mask(x: 1, y: 1, width: 2, height: 2)], count: 3))
  }
}
