@testable import Encoding

/// Reads the texts of an overlay from decoded pictures: each letter is the glyph that is most similar. Shapes and distances of the
/// letters are those of the font; their place and size come from the test.
package struct OverlayReader {
  /// The upper left corner of the first letter, and the size of a pixel of the font, in pixels of the picture.
  private let left: Double
  private let top: Double
  private let scale: Double

  package init(left: Double, top: Double, scale: Double) { (self.left, self.top, self.scale) = (left, top, scale) }

  /// - Parameter shown: the width that the picture is scaled to; nil for its own.
  package init(_ box: OverlayBox, in width: Int, shown: Int? = nil) {
    let factor = Double(shown ?? width) / Double(width)
    self.init(
      left: Double(box.origin.x) * factor, top: Double(box.origin.y) * factor, scale: Double(box.scale) * factor)
  }

  /// Returns the text of `count` letters.
  ///
  /// - Parameter sample: returns the brightness of a pixel, 0 to 255.
  package func text(of count: Int, _ sample: (_ x: Int, _ y: Int) -> Int) -> String {
    let letters = (0..<count).map { index -> UInt8 in
      let seen = (0..<BitmapFont.rows).flatMap { row in
        (0..<BitmapFont.columns).map { brightness(of: index * BitmapFont.advance + $0, row, sample) }
      }
      let known = UInt8(ascii: " ")...UInt8(ascii: "~")
      return known.min { Self.distance($0, seen) < Self.distance($1, seen) } ?? 0
    }
    return String(decoding: letters, as: UTF8.self)
  }

  package func text(of count: Int, in picture: Pixels) -> String {
    text(of: count) { x, y in Int(picture.bytes[3 * (y * picture.width + x) + 1]) }
  }

  /// Returns the mean brightness of the pixels that show a pixel of the font.
  private func brightness(of column: Int, _ row: Int, _ sample: (Int, Int) -> Int) -> Double {
    func pixels(_ start: Double, _ index: Int) -> ClosedRange<Int> {
      let first = Int((start + Double(index) * scale).rounded())
      return first...max(first, Int((start + Double(index + 1) * scale).rounded()) - 1)
    }
    let (columns, rows) = (pixels(left, column), pixels(top, row))
    let sum = rows.reduce(0) { sum, y in columns.reduce(sum) { $0 + sample($1, y) } }
    return Double(sum) / Double(columns.count * rows.count)
  }

  private static func distance(_ letter: UInt8, _ seen: [Double]) -> Double {
    seen.enumerated().reduce(0) { sum, pixel in
      let (row, column) = (pixel.offset / BitmapFont.columns, pixel.offset % BitmapFont.columns)
      return sum + abs(pixel.element - (BitmapFont.isSet(letter, column: column, row: row) ? 255 : 0))
    }
  }
}
