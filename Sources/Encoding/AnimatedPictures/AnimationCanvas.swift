// The pixels on screen of an animated picture, and what a new picture changes in them. A film codes a picture anew at the start of each
// segment, with other small errors. Those that anybody would see are drawn as changes: no measure tells them from a faint change of
// the screen.

import FileSystem
import FrameBatches

struct AnimationCanvas {
  /// The part of a picture that differs from the screen.
  struct Change {
    let area: SheetArea
    /// RGB of the area, row by row.
    let pixels: [UInt8]
    /// For each pixel of the area, whether it is drawn.
    let isDrawn: [Bool]

    var isWhole: Bool { !isDrawn.contains(false) }
  }

  /// The pixels that change together.
  enum Grain { case pixel, block }

  /// The side of a block. Blocks begin at even pixels.
  static let side = 8
  /// A pixel of a changed block has changed if a channel differs by more than this.
  private static let least = 2
  /// The differences of a block that nobody sees, in units of 255: of a pixel, and of all pixels on average.
  private static let unseen = (peak: 24, mean: 2)

  let size: PixelSize
  private let grain: Grain
  /// RGB, row by row: the pixels as they were drawn last; empty before the first picture.
  private var shown: [UInt8] = []
  /// The picture before.
  private var latest: [UInt8] = []

  init(_ size: PixelSize, grain: Grain) { (self.size, self.grain) = (size, grain) }

  /// Draws a picture.
  ///
  /// - Parameter picture: RGB24; a smaller one than the canvas lies in its middle, on black.
  /// - Returns: the part that is drawn; nil if the picture looks like the one on screen.
  mutating func draw(_ picture: FrameBuffer) -> Change? {
    let next = placed(picture)
    guard next != latest else { return nil }
    latest = next
    guard !shown.isEmpty else {
      shown = next
      let area = SheetArea(x: 0, y: 0, width: size.width, height: size.height)
      return Change(area: area, pixels: next, isDrawn: Array(repeating: true, count: size.width * size.height))
    }
    return update(to: next)
  }

  /// Draws the blocks that differ from the screen.
  private mutating func update(to next: [UInt8]) -> Change? {
    var isDrawn = [Bool](repeating: false, count: size.width * size.height)
    var (left, top, right, bottom) = (size.width, size.height, 0, 0)
    for row in stride(from: 0, to: size.height, by: Self.side) where rows(row, differIn: next) {
      for column in stride(from: 0, to: size.width, by: Self.side)
      where isChanged(next, column, row) {
        for y in row..<min(row + Self.side, size.height) {
          for x in column..<min(column + Self.side, size.width) {
            let at = 3 * (y * size.width + x)
            guard grain == .block || difference(next, at) > Self.least else { continue }
            isDrawn[y * size.width + x] = true
            (shown[at], shown[at + 1], shown[at + 2]) = (next[at], next[at + 1], next[at + 2])
            (left, right, top, bottom) = (min(left, x), max(right, x + 1), min(top, y), max(bottom, y + 1))
          }
        }
      }
    }
    guard left < right else { return nil }
    return part(SheetArea(x: left, y: top, width: right - left, height: bottom - top), isDrawn)
  }

  private func part(_ area: SheetArea, _ isDrawn: [Bool]) -> Change {
    var (pixels, drawn): ([UInt8], [Bool]) = ([], [])
    pixels.reserveCapacity(3 * area.width * area.height)
    drawn.reserveCapacity(area.width * area.height)
    for y in area.y..<area.y + area.height {
      let start = y * size.width + area.x
      pixels += shown[3 * start..<3 * (start + area.width)]
      drawn += isDrawn[start..<start + area.width]
    }
    return Change(area: area, pixels: pixels, isDrawn: drawn)
  }

  /// Whether any byte of the rows of blocks from `row` on differs from the screen.
  private func rows(_ row: Int, differIn next: [UInt8]) -> Bool {
    let range = 3 * row * size.width..<3 * min(row + Self.side, size.height) * size.width
    return range.contains { shown[$0] != next[$0] }
  }

  /// Whether a block differs from the screen by more than nobody sees.
  private func isChanged(_ next: [UInt8], _ column: Int, _ row: Int) -> Bool {
    let (width, height) = (min(Self.side, size.width - column), min(Self.side, size.height - row))
    var (red, green, blue) = (0, 0, 0)
    for y in row..<row + height {
      for x in column..<column + width {
        let at = 3 * (y * size.width + x)
        if difference(next, at) > Self.unseen.peak { return true }
        red += Int(next[at]) - Int(shown[at])
        green += Int(next[at + 1]) - Int(shown[at + 1])
        blue += Int(next[at + 2]) - Int(shown[at + 2])
      }
    }
    return max(abs(red), abs(green), abs(blue)) > Self.unseen.mean * width * height
  }

  /// The largest difference of a pixel's channels from the screen.
  private func difference(_ next: [UInt8], _ at: Int) -> Int {
    max(
      abs(Int(next[at]) - Int(shown[at])), abs(Int(next[at + 1]) - Int(shown[at + 1])),
      abs(Int(next[at + 2]) - Int(shown[at + 2])))
  }

  private func placed(_ picture: FrameBuffer) -> [UInt8] {
    precondition(picture.width <= size.width && picture.height <= size.height)
    let pixels = picture.packed(isRGB: true)
    guard picture.size != size else { return pixels }
    var canvas = [UInt8](repeating: 0, count: 3 * size.width * size.height)
    let (x, y) = ((size.width - picture.width) / 2, (size.height - picture.height) / 2)
    for row in 0..<picture.height {
      let target = 3 * ((y + row) * size.width + x)
      let source = 3 * row * picture.width
      canvas.replaceSubrange(
        target..<target + 3 * picture.width, with: pixels[source..<source + 3 * picture.width])
    }
    return canvas
  }
}
