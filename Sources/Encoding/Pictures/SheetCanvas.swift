// The canvas of a contact sheet: RGB pixels, and functions to draw on them. Parts outside the canvas are cut off.

import CFFmpeg
import FrameBatches

/// A rectangle of whole pixels.
package struct SheetArea: Equatable {
  package let x: Int
  package let y: Int
  package let width: Int
  package let height: Int

  package init(x: Int, y: Int, width: Int, height: Int) {
    self.x = x
    self.y = y
    self.width = width
    self.height = height
  }
}

package final class SheetCanvas {
  private let pixels: FrameBuffer

  package init(width: Int, height: Int, background: Colour) throws(FFmpegError) {
    pixels = try FrameBuffer(width: width, height: height, filledWith: background)
  }

  package func fill(_ area: SheetArea, _ colour: Colour) { paint(area, colour) { _, _ in true } }

  /// Paints half of the area in stripes from the lower left to the upper right.
  package func hatch(_ area: SheetArea, _ colour: Colour) { paint(area, colour) { x, y in (x + y) % 16 < 8 } }

  /// Draws a line of one pixel around the area.
  package func frame(_ area: SheetArea, _ colour: Colour) {
    let outer = SheetArea(x: area.x - 1, y: area.y - 1, width: area.width + 2, height: area.height + 2)
    let (right, bottom) = (outer.x + outer.width - 1, outer.y + outer.height - 1)
    paint(outer, colour) { x, y in x == outer.x || y == outer.y || x == right || y == bottom }
  }

  /// - Parameter picture: RGB.
  package func lay(_ picture: FrameBuffer, x: Int, y: Int) {
    let (from, to) = unsafe (picture.plane(0), pixels.plane(0))
    let columns = min(picture.width, pixels.width - x)
    guard x >= 0, columns > 0 else { return }
    for row in 0..<picture.height where (0..<pixels.height).contains(y + row) {
      unsafe (to.start + (y + row) * to.stride + 3 * x).update(from: from.start + row * from.stride, count: 3 * columns)
    }
  }

  /// Writes one line of text; `x` and `y` are its upper left corner.
  ///
  /// - Parameter scale: the number of pixels for each pixel of the font.
  package func write(_ text: String, x: Int, y: Int, scale: Int, _ colour: Colour) {
    for (index, letter) in text.utf8.enumerated() {
      let left = x + index * BitmapFont.advance * scale
      let area = SheetArea(x: left, y: y, width: BitmapFont.columns * scale, height: BitmapFont.rows * scale)
      paint(area, colour) { x, y in
        BitmapFont.isSet(letter, column: (x - area.x) / scale, row: (y - area.y) / scale)
      }
    }
  }

  package func png() throws(FFmpegError) -> [UInt8] { FilmMark.marking(try ImageFile.png(pixels)) }

  package func jpeg() throws(FFmpegError) -> [UInt8] {
    FilmMark.marking(try ImageFile.jpeg(try pixels.subsampled(), scale: 3))
  }

  /// Paints the pixels of an area for which `isWanted` returns true.
  private func paint(_ area: SheetArea, _ colour: Colour, where isWanted: (Int, Int) -> Bool) {
    let (start, stride) = unsafe pixels.plane(0)
    let columns = max(0, area.x)..<max(0, area.x, min(pixels.width, area.x + area.width))
    for y in max(0, area.y)..<max(0, area.y, min(pixels.height, area.y + area.height)) {
      let row = unsafe start + y * stride
      for x in columns where isWanted(x, y) {
        unsafe row[3 * x] = colour.red
        unsafe row[3 * x + 1] = colour.green
        unsafe row[3 * x + 2] = colour.blue
      }
    }
  }
}
