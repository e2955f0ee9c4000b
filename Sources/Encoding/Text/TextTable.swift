// Reads tesseract's TSV. The program has seen a picture of a stranger, so its answer is checked like input.

/// A word in a picture.
package struct FoundWord: Sendable, Equatable {
  package let text: String
  /// In pixels of the picture.
  package let box: PictureRegion
  /// From 0 to 100, as tesseract states it.
  package let confidence: Int

  package init(text: String, box: PictureRegion, confidence: Int) {
    (self.text, self.box, self.confidence) = (text, box, confidence)
  }
}

/// An answer of tesseract that is not the expected table.
struct BadTextTable: Error {}

enum TextTable {
  /// Maximum bytes of an answer, and of a word; maximum number of words.
  static let (maximumBytes, maximumWordBytes, maximumWords) = (8 << 20, 256, 20_000)

  /// Returns the words with at least one letter or digit. Words that are too long are left out.
  ///
  /// - Parameter regions: those of the pages, in their order.
  static func words(in bytes: [UInt8], of regions: [PictureRegion]) throws(BadTextTable) -> [FoundWord] {
    guard bytes.count <= maximumBytes else { throw BadTextTable() }
    var words: [FoundWord] = []
    var pages = 0
    for line in bytes.split(separator: UInt8(ascii: "\n")).dropFirst() {
      let cells = line.split(separator: UInt8(ascii: "\t"), maxSplits: 11, omittingEmptySubsequences: false)
      guard cells.count >= 11, let level = number(cells[0]), let page = number(cells[1]) else { throw BadTextTable() }
      if level == 1 {
        pages += 1
        guard page == pages, pages <= regions.count else { throw BadTextTable() }
      }
      guard level == 5 else { continue }
      guard page == pages, pages > 0, words.count < maximumWords else { throw BadTextTable() }
      if let word = try word(cells, in: regions[page - 1]) { words.append(word) }
    }
    guard pages == regions.count else { throw BadTextTable() }
    return words
  }

  /// - Returns: nil for a word without letters and digits or without an area, and one that is too long.
  private static func word(_ cells: [ArraySlice<UInt8>], in region: PictureRegion) throws(BadTextTable) -> FoundWord? {
    guard cells.count == 12, let x = number(cells[6]), let y = number(cells[7]), let width = number(cells[8]),
      let height = number(cells[9]), let confidence = Double(String(decoding: cells[10], as: UTF8.self)),
      confidence.isFinite, (0...region.width).contains(x), (0...region.height).contains(y),
      (0...region.width - x).contains(width), (0...region.height - y).contains(height)
    else { throw BadTextTable() }
    guard width > 0, height > 0, cells[11].count <= maximumWordBytes,
      let text = String(validating: cells[11], as: UTF8.self),
      text.contains(where: { $0.isLetter || $0.isNumber }),
      !text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control })
    else { return nil }
    let box = PictureRegion(x: region.x + x, y: region.y + y, width: width, height: height)
    return FoundWord(text: text, box: box, confidence: Int(min(max(confidence, 0), 100)))
  }

  /// Returns a whole number of at most seven digits.
  private static func number(_ cell: ArraySlice<UInt8>) -> Int? {
    (1...7).contains(cell.count) ? Int(String(decoding: cell, as: UTF8.self)) : nil
  }
}
