import Foundation
import TestSupport
import Testing

/// The changed area of each frame in the manifests is that of pictures that another program has decoded and plain loops compare.
@Suite struct ChangedAreaTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private typealias Shown = (name: String, changedBlocks: Int?, width: Int, height: Int)

  /// Returns the captured frames of a session. Continued frames change in nothing.
  private func captured(_ session: PublishedSession) -> [Shown] {
    #expect(session.manifests.flatMap(\.frames).allSatisfy { $0.status == "captured" || $0.changedBlocks == 0 })
    return session.manifests.flatMap { manifest in
      manifest.frames.filter { $0.status == "captured" }.map {
        ($0.source, $0.changedBlocks, manifest.width, manifest.height)
      }
    }
  }

  /// Expects the numbers of pictures that follow one another in one batch.
  private func expect(_ shown: [Shown], of pictures: [CodedSamples]) throws {
    try #require(shown.count == pictures.count)
    for (index, frame) in shown.enumerated() {
      let area = index == 0 ? nil : pictures[index].changedArea(since: pictures[index - 1])
      #expect(frame.changedBlocks == area, "\(frame.name)")
    }
  }

  // The frames of `corrupt-frames` that can be decoded follow one another. Those of `rotation` change their size.
  @Test(arguments: Fixture.all.filter { !["masks", "colour-bars"].contains($0.name) } + Fixture.corpus)
  func everyNumberIsThatOfAnotherDecoder(fixture: Fixture) throws {
    let shown = captured(try EncoderWorker.encode(fixture, into: scratch))
    var pictures: [CodedSamples] = []
    while pictures.count < shown.count {
      let first = shown[pictures.count]
      let run = shown[pictures.count...].prefix { ($0.width, $0.height) == (first.width, first.height) }
      pictures += try CodedSamples.jpegs(
        run.prefix(50).map { try fixture.bytes($0.name) }, width: first.width, height: first.height)
    }
    try expect(shown, of: pictures)
    if fixture.name == "rotation" { #expect(shown.map { $0.changedBlocks == nil }.count { $0 } == 3) }
  }

  /// The first frame has a mask, the second is blacked out as its mask has no number.
  @Test func masksAreAppliedBeforePicturesAreCompared() throws {
    let fixture = Fixture("masks")
    let shown = captured(try EncoderWorker.encode(fixture, into: scratch))
    let pictures = try CodedSamples.jpegs(
      ["0000.jpg", "0001.jpg", "0002.jpg"].map(fixture.bytes), width: 180, height: 320)
    try expect(
      shown,
      of: [
        pictures[0].masked(columns: 20..<121, rows: 200..<241), pictures[1].masked(columns: 0..<180, rows: 0..<320),
        pictures[2],
      ])
    let area = try #require(shown[1].changedBlocks)
    #expect(area > 0 && area < 12 * 20)
  }

  // MARK: transparent pictures and odd sizes

  /// Makes a batch of pictures that differ in a few pixels each, with masks, and returns its pictures as they are to be coded.
  private func batch(_ name: String, _ width: Int, _ height: Int, hasAlpha: Bool) throws -> [CodedSamples] {
    var random = Random(seed: width)
    let channels = hasAlpha ? 4 : 3
    var samples = (0..<channels * width * height).map { _ in Int(random.int(0...255)) }
    _ = try scratch.directory(name)
    var (list, pictures): ([String], [CodedSamples]) = ([], [])
    for number in 0..<8 {
      // Picture 3 is another file with the same pixels.
      for _ in 0..<(number == 3 ? 0 : 1 << number) {
        samples[Int(random.int(0...Int64(samples.count - 1)))] = Int(random.int(0...255))
      }
      try scratch.file(
        "\(name)/\(number).png",
        PNGImage.file(
          width: width, height: height, depth: 8, kind: hasAlpha ? 6 : 2, samples: samples,
          chunks: [("tEXt", Array("number\0\(number)".utf8))]))
      let rgb = (0..<width * height).flatMap { pixel in
        (0..<3).map { channel -> UInt8 in
          let value = samples[channels * pixel + channel]
          guard hasAlpha else { return UInt8(value) }
          let alpha = samples[channels * pixel + 3]
          return UInt8((Double(value * alpha + 255 * (255 - alpha)) / 255).rounded())
        }
      }
      let (left, top, side) = ((number == 3 ? 2 : number) % 3 * 20, 10, number == 6 ? 0 : 15)
      pictures.append(
        CodedSamples(rgb: rgb, width: width, height: height).masked(columns: left..<left + side, rows: top..<top + side)
      )
      let masks = side == 0 ? "" : #"{"x":\#(left),"y":\#(top),"width":\#(side),"height":\#(side)}"#
      list.append(
        #"{"file":"\#(number).png","timeMs":\#(1_767_859_512_340 + 1_000 * number),"masks":[\#(masks)]}"#)
    }
    try scratch.file(
      "\(name)/batch.json", Array(#"{"version":1,"session":"s","frames":[\#(list.joined(separator: ","))]}"#.utf8))
    return pictures
  }

  @Test(arguments: [(101, 67), (64, 48), (17, 90), (130, 33)], [false, true])
  func numbersOfPNGs(size: (width: Int, height: Int), hasAlpha: Bool) throws {
    let pictures = try batch("b", size.width, size.height, hasAlpha: hasAlpha)
    let result = try EncoderWorker.run(
      "encode", scratch.path("b"), "--background", "ffffff", "--output", scratch.path("output"))
    try #require(result.status == 0, "\(result.errors)")
    try expect(captured(try PublishedSession(scratch.path("output/s"))), of: pictures)
  }

  // MARK: later encodings

  @Test func reencodingKeepsNumbersOfTheSameSizeOnly() throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let numbers = session.manifests.flatMap(\.frames).map(\.changedBlocks)
    #expect(numbers[0] == nil && numbers.dropFirst().allSatisfy { $0 != nil })
    for (output, options) in [("same", []), ("small", ["--max-side", "100"]), ("limited", ["--max-side", "320"])] {
      let result = try Tool.run(
        EncoderWorker.path,
        ["reencode", session.path, "--output", scratch.path(output), "--quality", "small"] + options)
      try #require(result.status == 0, "\(result.errors)")
      let again = try PublishedSession(scratch.path(output + "/exact-1fps")).manifests.flatMap(\.frames)
      if output == "small" {
        #expect(again.allSatisfy { $0.changedBlocks == ($0.status == "captured" ? nil : 0) })
      } else {
        #expect(again.map(\.changedBlocks) == numbers)
      }
    }
  }

  /// A finished film tells nothing of the pictures that it was made of.
  @Test func importedVideosHaveNoNumbers() throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let film = scratch.path("film.mp4")
    try #require(try EncoderWorker.run("stitch", session.path, "--to", film).status == 0)
    let result = try EncoderWorker.run(
      "reencode", film, "--output", scratch.path("again"), "--session", "film", "--quality", "balanced")
    try #require(result.status == 0, "\(result.errors)")
    let frames = try PublishedSession(scratch.path("again/film")).manifests.flatMap(\.frames)
    #expect(frames.count >= 12 && frames.allSatisfy { $0.changedBlocks == ($0.status == "captured" ? nil : 0) })
  }
}
