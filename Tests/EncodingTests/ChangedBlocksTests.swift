import JSON
import TestSupport
import Testing

@testable import Encoding
@testable import FrameBatches

/// The blocks in which two pictures differ are those of plain loops over their samples.
@Suite struct ChangedBlocksTests {
  private func coded(_ pixels: [Int], _ width: Int, _ height: Int) -> CodedSamples {
    CodedSamples(rgb: pixels.map { UInt8($0) }, width: width, height: height)
  }

  /// Narrower than the vectors, than a group of blocks, with groups that overlap, and with edges of one pixel.
  @Test(arguments: [1, 2, 16, 17, 33, 63, 64, 65, 66, 96, 130], [1, 17, 40])
  func everyBlockIsThatOfPlainLoops(width: Int, height: Int) throws {
    var random = Random(seed: width * 1_000 + height)
    var pixels = (0..<3 * width * height).map { _ in Int(random.int(0...255)) }
    var (last, lastCoded) = (try picture(pixels, width, height), coded(pixels, width, height))
    for changes in [0, 1, 5, 40] {
      for _ in 0..<changes { pixels[Int(random.int(0...Int64(pixels.count - 1)))] = Int(random.int(0...255)) }
      let (next, nextCoded) = (try picture(pixels, width, height), coded(pixels, width, height))
      let found = try #require(ChangedBlocks(in: next, since: last))
      let wanted = try #require(nextCoded.changedBlocks(since: lastCoded))
      let blocks = (0..<found.rows).map { row in (0..<found.columns).map { found[column: $0, row: row] } }
      #expect(blocks == wanted && found.count == wanted.joined().count { $0 })
      #expect(ChangedBlocks.total(width: width, height: height) == found.rows * found.columns)
      #expect(ChangedBlocks.count(in: next, since: last) == found.count)
      (last, lastCoded) = (next, nextCoded)
    }
    #expect(ChangedBlocks.count(in: last, since: last) == 0)
  }

  /// A block holds its chroma samples, and no others.
  @Test func changeOfColoursAloneCounts() throws {
    // Both have the luma 76.
    let (red, grey) = ([254, 0, 0], [76, 76, 76])
    let plain = (0..<64 * 48).flatMap { _ in grey }
    var changed = plain
    for y in 16..<18 {
      for x in 62..<64 { changed.replaceSubrange(3 * (y * 64 + x)..<3 * (y * 64 + x) + 3, with: red) }
    }
    let found = try #require(ChangedBlocks(in: picture(changed, 64, 48), since: picture(plain, 64, 48)))
    #expect(found.count == 1 && found[column: 3, row: 1])
  }

  @Test func picturesOfDifferentSizesHaveNoNumber() throws {
    let (wide, high) = (Array(repeating: 0, count: 3 * 32 * 16), Array(repeating: 0, count: 3 * 32 * 16))
    #expect(try ChangedBlocks.count(in: picture(wide, 32, 16), since: picture(high, 16, 32)) == nil)
    // Sizes that are coded alike are no equal sizes.
    #expect(
      try ChangedBlocks.count(
        in: picture(Array(repeating: 0, count: 3 * 32 * 15), 32, 15), since: picture(wide, 32, 16)) == nil)
  }

  // MARK: manifests

  private func manifest(_ frame: String) throws -> PublishedSegment {
    try PublishedSegment(
      JSONParser.parse(
        Array(
          """
          {"format":"segment-manifest/1","batch":"b","batchDigest":"d","part":1,"parts":1,"file":"segment-0000000001000.mp4",
          "startMs":1000,"endMs":2000,"width":17,"height":32,"codedWidth":18,"codedHeight":32,"bytes":1,"sha256":"","samples":1,
          "frames":[{"timeMs":1000,"holdMs":1000,"source":"a","status":"captured"\(frame)}],"intervalMs":1000,"gapAfterMs":0,
          "final":false}
          """.utf8)))
  }

  @Test func manifestOfAnEarlierVersionHasNoNumber() throws {
    #expect(try manifest("").frames[0].changedBlocks == nil)
    #expect(try manifest(#","changedBlocks":0"#).frames[0].changedBlocks == 0)
    #expect(try manifest(#","changedBlocks":4"#).frames[0].changedBlocks == 4)
  }

  @Test(arguments: ["5", "-1", "1.5", "null", #""1""#])
  func numberThatCannotBeIsUnknown(number: String) throws {
    #expect(try manifest(#","changedBlocks":\#(number)"#).frames[0].changedBlocks == nil)
  }

  /// A batch that an earlier version has published is recognised when it is sent again.
  @Test func cutIsTheSameWithAndWithoutNumbers() throws {
    #expect(try manifest("").isCutLike(manifest(#","changedBlocks":4"#)))
  }

  @Test func continuedPictureIsTheOneBefore() {
    func hold(_ status: FrameHold.Status, _ changedBlocks: Int?) -> FrameHold {
      FrameHold(
        capture: Capture(source: "a", timeMs: 0, width: 16, height: 16, changedBlocks: changedBlocks), status: status,
        startMs: 0,
        holdMs: 1, opensSegment: true, closingGapMs: nil)
    }
    #expect(hold(.captured, 1).changedBlocks == 1 && hold(.captured, nil).changedBlocks == nil)
    #expect(hold(.continued, 1).changedBlocks == 0 && hold(.continued, nil).changedBlocks == 0)
  }
}

/// Returns the picture of a PNG.
///
/// - Parameter pixels: red, green and blue of each.
func picture(_ pixels: [Int], _ width: Int, _ height: Int) throws -> Picture {
  let file = PNGImage.file(width: width, height: height, depth: 8, kind: 2, samples: pixels)
  return try PictureDecoder(limits: Limits())
    .picture(from: [file], FrameComposition(content: .image(nil), masks: .none)).picture
}
