// Many small pictures in one JPEG: players fetch a file, and show parts of it.

import CFFmpeg
import FrameBatches

/// Where pictures of one size lie in a sprite, in pixels. Pure.
package struct SpriteGrid: Equatable {
  package static let columns = 10
  /// JPEG codes blocks of so many pixels; a block that two pictures share would show each in the other.
  private static let block = 16

  /// Of each picture.
  package let size: PixelSize
  package let count: Int

  package init(size: PixelSize, count: Int) {
    self.size = size
    self.count = count
  }

  private var pitch: PixelSize {
    func rounded(_ length: Int) -> Int { (length + Self.block - 1) / Self.block * Self.block }
    return PixelSize(width: rounded(size.width), height: rounded(size.height))
  }

  package var whole: PixelSize {
    PixelSize(
      width: min(count, Self.columns) * pitch.width, height: (count + Self.columns - 1) / Self.columns * pitch.height)
  }

  package func origin(_ index: Int) -> (x: Int, y: Int) {
    (index % Self.columns * pitch.width, index / Self.columns * pitch.height)
  }

  /// The area of a picture: itself, and the rest of its blocks.
  fileprivate func cell(_ index: Int) -> SheetArea {
    let (x, y) = origin(index)
    return SheetArea(x: x, y: y, width: pitch.width, height: pitch.height)
  }
}

package enum Sprite {
  /// - Parameter pictures: planar 4:2:0, of the grid's size and number.
  package static func jpeg(of pictures: [FrameBuffer], in grid: SpriteGrid) throws(FFmpegError) -> [UInt8] {
    precondition(pictures.count == grid.count)
    let sheet = try FrameBuffer(width: grid.whole.width, height: grid.whole.height, format: AV_PIX_FMT_YUV420P)
    for plane in 0..<3 {
      let (start, stride) = sheet.plane(plane)
      let rows = plane == 0 ? sheet.height : sheet.height / 2
      // Black where a row of pictures is not full; chroma has no colour at 128.
      for row in 0..<rows {
        (start + row * stride).update(
          repeating: plane == 0 ? 0 : 128, count: plane == 0 ? sheet.width : sheet.width / 2)
      }
    }
    for (index, picture) in pictures.enumerated() {
      precondition((picture.width, picture.height) == (grid.size.width, grid.size.height))
      for plane in 0..<3 { lay(picture, plane, on: sheet, grid.cell(index)) }
    }
    return try ImageFile.jpeg(sheet, scale: 8)
  }

  /// The picture's edges are repeated up to the end of its blocks, so that nothing rings into it.
  private static func lay(_ picture: FrameBuffer, _ plane: Int, on sheet: FrameBuffer, _ cell: SheetArea) {
    let shift = plane == 0 ? 0 : 1
    let (from, to) = (picture.plane(plane), sheet.plane(plane))
    let (columns, rows) = ((picture.width + shift) >> shift, (picture.height + shift) >> shift)
    for row in 0..<cell.height >> shift {
      let source = from.start + min(row, rows - 1) * from.stride
      let target = to.start + (cell.y >> shift + row) * to.stride + cell.x >> shift
      target.update(from: source, count: columns)
      (target + columns).update(repeating: source[columns - 1], count: cell.width >> shift - columns)
    }
  }
}
