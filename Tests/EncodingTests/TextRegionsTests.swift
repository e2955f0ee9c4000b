import FrameBatches
import TestSupport
import Testing

@testable import Encoding

/// The regions of a picture that are read for their words.
@Suite struct TextRegionsTests {
  private static let size = PixelSize(width: 800, height: 480)
  private static let (columns, rows) = (50, 30)

  private static func flags(_ blocks: [(column: Int, row: Int)]) -> [Bool] {
    var flags = [Bool](repeating: false, count: columns * rows)
    for block in blocks { flags[block.row * columns + block.column] = true }
    return flags
  }

  private func boxes(_ blocks: (column: Int, row: Int)...) -> [PictureRegion] {
    TextRegions.boxes(around: Self.flags(blocks), in: Self.size)
  }

  @Test func boxIsWiderThanTheChangedBlocks() {
    #expect(boxes((20, 10)) == [PictureRegion(x: 224, y: 112, width: 208, height: 112)])
    #expect(boxes((20, 10), (22, 11)) == [PictureRegion(x: 224, y: 112, width: 240, height: 128)])
    #expect(boxes() == [])
  }

  @Test func boxEndsAtTheEdge() {
    #expect(boxes((0, 0)) == [PictureRegion(x: 0, y: 0, width: 112, height: 64)])
    #expect(boxes((49, 29)) == [PictureRegion(x: 688, y: 416, width: 112, height: 64)])
    let small = PixelSize(width: 20, height: 10)
    #expect(TextRegions.boxes(around: [true, false], in: small) == [PictureRegion(x: 0, y: 0, width: 20, height: 10)])
  }

  @Test func changesThatAreFarApartHaveBoxesOfTheirOwn() {
    #expect(
      boxes((5, 5), (40, 25)) == [
        PictureRegion(x: 0, y: 32, width: 192, height: 112), PictureRegion(x: 544, y: 352, width: 208, height: 112),
      ])
  }

  /// The letter lies beside the word: the box has all of it, and margins in its height.
  @Test func boxHasTheWholeWordThatAChangeFollows() {
    let word = PictureRegion(x: 160, y: 96, width: 400, height: 48)
    let flags = Self.flags([(column: 37, row: 7)])
    #expect(
      TextRegions.boxes(around: flags, in: Self.size, words: [word]) == [
        PictureRegion(x: 112, y: 64, width: 592, height: 112)
      ])
    // A word that is farther away than a letter is left alone.
    let far = PictureRegion(x: 16, y: 96, width: 400, height: 48)
    #expect(
      TextRegions.boxes(around: flags, in: Self.size, words: [far])
        == TextRegions.boxes(around: flags, in: Self.size))
  }

  @Test(arguments: 0..<40) func boxesAreDisjointAndHaveEveryChangedBlock(seed: Int) {
    var random = Random(seed: seed)
    let blocks = (0..<Int(random.int(1...30))).map { _ in
      (column: Int(random.int(0...49)), row: Int(random.int(0...29)))
    }
    let boxes = TextRegions.boxes(around: Self.flags(blocks), in: Self.size)
    for (index, box) in boxes.enumerated() {
      let others = boxes[(index + 1)...]
      #expect(
        !others.contains {
          box.x < $0.x + $0.width && $0.x < box.x + box.width && box.y < $0.y + $0.height && $0.y < box.y + box.height
        })
      #expect(box.x + box.width <= 800 && box.y + box.height <= 480)
    }
    for block in blocks {
      let (x, y) = (16 * block.column, 16 * block.row)
      let has = boxes.contains { box in
        box.x <= max(0, x - 96) && box.y <= max(0, y - 48) && box.x + box.width >= min(800, x + 112)
          && box.y + box.height >= min(480, y + 64)
      }
      #expect(has, "\(block)")
    }
  }

  @Test func changeTouchesTheWordsInItsBlocksOnly() {
    let change = TextChange(of: Self.flags([(column: 20, row: 10)]), in: Self.size)
    #expect(change.touches(PictureRegion(x: 330, y: 170, width: 40, height: 12)))
    #expect(!change.touches(PictureRegion(x: 336, y: 160, width: 40, height: 16)))
    #expect(!change.touches(PictureRegion(x: 320, y: 176, width: 16, height: 16)))
    #expect(!change.touches(PictureRegion(x: 900, y: 900, width: 10, height: 10)))
    let all = TextChange(of: nil, in: Self.size)
    #expect(all.touches(PictureRegion(x: 0, y: 0, width: 1, height: 1)) && all.regions.count == 1)
  }
}
