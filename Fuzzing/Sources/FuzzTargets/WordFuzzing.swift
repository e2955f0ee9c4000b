import FrameBatches

@testable import Encoding
@testable import Sessions

/// Reads the answer of the program that recognizes text, and the file of a segment's words.
enum WordFuzzing {
  private static let regions = [
    PictureRegion(x: 0, y: 0, width: 320, height: 200), PictureRegion(x: 16, y: 32, width: 64, height: 48),
  ]

  static func read(_ bytes: [UInt8]) {
    if let words = try? TextTable.words(in: bytes, of: regions) {
      require(words.allSatisfy { word in regions.contains { isInside(word.box, $0) } }, "words within the regions")
    }
    if let text = try? SegmentText(bytes) {
      require((try? SegmentText(text.bytes)) == text, "the same words after writing")
    }
  }

  private static func isInside(_ box: PictureRegion, _ region: PictureRegion) -> Bool {
    region.x <= box.x && region.y <= box.y && box.x + box.width <= region.x + region.width
      && box.y + box.height <= region.y + region.height
  }
}
