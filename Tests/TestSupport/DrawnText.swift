import Foundation

@testable import Encoding

/// A white picture with words in the letters of overlays, four times as large: tesseract reads them all.
public struct DrawnText {
  /// Pixels for each pixel of the letters, and from one letter to the next.
  static let scale = 4
  public static let advance = BitmapFont.advance * scale
  /// The height of an upper-case letter.
  public static let height = 7 * scale

  public let width: Int
  public let height: Int
  /// Grey, row by row.
  public private(set) var samples: [UInt8]

  public init(width: Int, height: Int) {
    (self.width, self.height) = (width, height)
    samples = [UInt8](repeating: 255, count: width * height)
  }

  /// Writes black letters; `x` and `y` are the upper left corner. Letters outside the picture are cut off.
  public mutating func write(_ text: String, x: Int, y: Int) {
    for (index, letter) in text.utf8.enumerated() {
      for row in 0..<BitmapFont.rows * Self.scale {
        for column in 0..<BitmapFont.columns * Self.scale {
          let (left, top) = (x + index * Self.advance + column, y + row)
          guard left < width, top < height,
            BitmapFont.isSet(letter, enlarged: Self.scale, x: column, y: row)
          else { continue }
          samples[top * width + left] = 0
        }
      }
    }
  }

  /// The picture as a PNG.
  public var png: [UInt8] {
    PNGImage.file(width: width, height: height, depth: 8, kind: 0, samples: samples.map(Int.init))
  }
}

extension Tool {
  /// Whether Debian's tesseract is installed.
  public static let readsText = FileManager.default.isExecutableFile(atPath: "/usr/bin/tesseract")
}
