// The places of an overlay's texts in a picture. Pure. The clock is at the bottom left, and the name at the bottom right, or above
// the clock if both do not fit beside each other. The events are above
// them, and the caption is above all.

import FrameBatches

/// A line of white text on a black box.
package struct OverlayBox: Equatable {
  /// Characters of ``BitmapFont``.
  package let text: [UInt8]
  /// In pixels of the picture; all even, so that the box has chroma samples of its own.
  package let area: SheetArea
  /// The number of pixels for each pixel of the font.
  package let scale: Int

  /// The upper left corner of the first letter.
  package var origin: (x: Int, y: Int) { (area.x + scale, area.y + scale) }
}

package struct OverlayLayout: Equatable {
  package private(set) var boxes: [OverlayBox] = []
  /// The parts for which the picture has no room.
  package private(set) var omitted: [OverlayPart] = []
  private let grid: Grid

  /// - Parameter size: the picture's size, without the columns and rows that coding adds.
  package init(_ texts: OverlayTexts, in size: PixelSize) {
    let grid = Grid(size)
    self.grid = grid
    var row = 0
    var left = 0
    if !texts.clock.isEmpty {
      let text = texts.clock.first { grid.fits($0.utf8.count) }.map(Self.letters)
      left = place(.clock, text, inRow: 0) { _ in grid.margin }?.area.width ?? 0
      row = left > 0 ? 1 : 0
    }
    if let name = texts.name.map(Self.letters) {
      let isBeside = left > 0 && grid.width(of: name.count) <= grid.room - left - 2 * grid.margin
      let box = place(.name, grid.shortened(name), inRow: isBeside ? 0 : row) { grid.rightmost - $0 }
      if box != nil, !isBeside { row += 1 }
    }
    if let events = texts.events.map(Self.letters) {
      if place(.events, grid.shortened(events), inRow: row, x: { _ in grid.margin }) != nil { row += 1 }
    }
    if let caption = texts.caption.map(Self.letters) {
      place(.caption, grid.shortened(caption), inRow: row) { _ in grid.margin }
    }
  }

  /// Places a text; a part without room is omitted.
  ///
  /// - Parameters:
  ///   - row: counted from the bottom.
  ///   - x: returns the left edge of a box of this width.
  @discardableResult
  private mutating func place(
    _ part: OverlayPart, _ text: [UInt8]?, inRow row: Int, x: (_ width: Int) -> Int
  ) -> OverlayBox? {
    guard let text, let y = grid.y(ofRow: row) else {
      omitted.append(part)
      return nil
    }
    let width = grid.width(of: text.count)
    let box = OverlayBox(
      text: text, area: SheetArea(x: x(width) & ~1, y: y, width: width, height: grid.height), scale: grid.scale)
    boxes.append(box)
    return box
  }

  /// Returns the letters of a text. The font has those of ASCII; each other character becomes a question mark.
  private static func letters(_ text: String) -> [UInt8] {
    text.map { character in
      character.asciiValue.flatMap { (0x20...0x7E).contains($0) ? $0 : nil } ?? UInt8(ascii: "?")
    }
  }
}

/// The lines and columns of text in a picture.
private struct Grid: Equatable {
  let scale: Int
  /// The distance of boxes from the picture's edges, in pixels.
  let margin: Int
  /// The height of a box, in pixels.
  let height: Int
  /// The width between the margins, in pixels.
  let room: Int
  private let size: PixelSize

  /// Shown at this width in pixels, a capital letter is at least ``letterHeight`` pixels high.
  private static let shownWidth = 375
  private static let letterHeight = 12
  /// The height of a capital letter in the font.
  private static let capitalRows = 7
  /// The fewest letters that a text is shortened to.
  private static let fewestLetters = 8

  init(_ size: PixelSize) {
    let unit = Self.shownWidth * Self.capitalRows
    self.size = size
    scale = max(1, (size.width * Self.letterHeight + unit - 1) / unit)
    margin = 2 * scale
    // One pixel of the font is around the letters.
    height = Self.even((BitmapFont.rows + 2) * scale)
    room = size.width - 2 * margin
  }

  /// The right edge of the last box of a row.
  var rightmost: Int { size.width - margin }

  /// Returns the width of a box.
  func width(of letters: Int) -> Int { Self.even((letters * BitmapFont.advance + 1) * scale) }

  func fits(_ letters: Int) -> Bool { letters > 0 && width(of: letters) <= room }

  /// Returns the upper edge of a row, counted from the bottom; nil if the picture is not so high.
  func y(ofRow row: Int) -> Int? {
    let y = (size.height - margin) / 2 * 2 - (row + 1) * height
    return y >= 0 ? y : nil
  }

  /// Returns a text that fits into a row: its beginning, if it is longer; nil if not even that fits.
  func shortened(_ text: [UInt8]) -> [UInt8]? {
    if fits(text.count) { return text }
    var most = (room / scale - 1) / BitmapFont.advance
    // The width of a box is even.
    if !fits(most) { most -= 1 }
    guard most >= Self.fewestLetters else { return nil }
    return text.prefix(most - 3) + Array("...".utf8)
  }

  private static func even(_ length: Int) -> Int { length + length % 2 }
}
