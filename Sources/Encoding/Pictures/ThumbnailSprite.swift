// Many small pictures in one JPEG, of which players show parts.

import CFFmpeg
import FrameBatches

/// The positions of pictures of one size in a sprite, in pixels.
package struct SpriteGrid: Equatable {
  package static let columns = 10
  /// The side of the blocks that JPEG codes; in a block of two pictures each would be visible in the other.
  private static let block = 16

  /// The size of each picture.
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

  /// The size of the sprite.
  package var whole: PixelSize {
    PixelSize(
      width: min(count, Self.columns) * pitch.width, height: (count + Self.columns - 1) / Self.columns * pitch.height)
  }

  package func origin(_ index: Int) -> (x: Int, y: Int) {
    (index % Self.columns * pitch.width, index / Self.columns * pitch.height)
  }

  /// The area of a picture and of the rest of its blocks.
  fileprivate func cell(_ index: Int) -> SheetArea {
    let (x, y) = origin(index)
    return SheetArea(x: x, y: y, width: pitch.width, height: pitch.height)
  }
}

package enum ThumbnailSprite {
  /// - Parameter pictures: planar 4:2:0, as many and as large as the grid says.
  package static func jpeg(of pictures: [FrameBuffer], in grid: SpriteGrid) throws(FFmpegError) -> [UInt8] {
    precondition(pictures.count == grid.count)
    let (width, height) = (grid.whole.width, grid.whole.height)
    let sheet = try FrameBuffer(width: width, height: height, format: AV_PIX_FMT_YUV420P)
    // Visible where the last row of pictures is not full.
    var planes = unsafe sheet.planes.map { unsafe $0.start }
    try unsafe check(
      "av_image_fill_black",
      av_image_fill_black(
        &planes, sheet.planes.map { unsafe $0.stride }, sheet.format, AVCOL_RANGE_JPEG, Int32(width), Int32(height)))
    for (index, picture) in pictures.enumerated() {
      precondition(picture.size == grid.size)
      for plane in 0..<3 { lay(picture, plane, on: sheet, grid.cell(index)) }
    }
    return try ImageFile.jpeg(sheet, scale: 8)
  }

  /// Copies a plane, and repeats the picture's edges up to the end of its blocks, so that no ringing enters the picture.
  private static func lay(_ picture: FrameBuffer, _ plane: Int, on sheet: FrameBuffer, _ cell: SheetArea) {
    let shift = plane == 0 ? 0 : 1
    let (from, to) = unsafe (picture.plane(plane), sheet.plane(plane))
    let (columns, rows) = ((picture.width + shift) >> shift, (picture.height + shift) >> shift)
    for row in 0..<cell.height >> shift {
      let source = unsafe from.start + min(row, rows - 1) * from.stride
      let target = unsafe to.start + (cell.y >> shift + row) * to.stride + cell.x >> shift
      unsafe target.update(from: source, count: columns)
      unsafe (target + columns).update(repeating: source[columns - 1], count: cell.width >> shift - columns)
    }
  }
}
