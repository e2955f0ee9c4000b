// Where two pictures of a film differ. A film is not exact: where the captured pictures were equal, its pictures may differ by noise.

import CPixels
import FrameBatches

/// A rectangle of a picture, in pixels.
package struct PictureRegion: Sendable, Hashable {
  package let x: Int
  package let y: Int
  package let width: Int
  package let height: Int

  package init(x: Int, y: Int, width: Int, height: Int) {
    (self.x, self.y, self.width, self.height) = (x, y, width, height)
  }
}

/// The difference of two decoded pictures, by blocks.
package struct DecodedChange {
  /// The mean difference of a changed block's samples, in levels of 255: letters make more of it, the codec's noise less.
  package static let noise = 8
  /// The maximum number of regions.
  package static let regions = 16

  private let size: PixelSize
  private let columns: Int
  private let rows: Int
  /// The sums of the differences of each block's samples, row by row.
  private let sums: [UInt32]

  /// Compares two pictures in planar 4:2:0.
  ///
  /// - Returns: nil if they have different sizes.
  package init?(of picture: FrameBuffer, since other: FrameBuffer) {
    guard picture.size == other.size else { return nil }
    size = picture.size
    (columns, rows) = ChangedBlocks.grid(width: size.width, height: size.height)
    var sums = [UInt32](repeating: 0, count: columns * rows)
    for index in 0..<3 {
      let (shift, side) = index == 0 ? (0, ChangedBlocks.side) : (1, ChangedBlocks.side / 2)
      let (one, two) = unsafe (picture.plane(index), other.plane(index))
      unsafe cpx_block_differences(
        one.start, one.stride, two.start, two.stride, (size.width + shift) >> shift, (size.height + shift) >> shift,
        side, &sums)
    }
    self.sums = sums
  }

  /// Whether all samples are equal.
  package var isEqual: Bool { sums.allSatisfy { $0 == 0 } }

  /// The number of blocks that differ by more than noise.
  package var blocks: Int { changed(nil).count { $0 } }

  package var total: Int { sums.count }

  /// Returns the bounds of connected blocks that differ, from top to bottom; the largest regions if there are many.
  ///
  /// - Parameter count: the number of blocks that are known to differ, those with the largest differences; nil for those that differ by
  ///   more than noise.
  package func regions(ofBlocks count: Int?) -> [PictureRegion] {
    var flags = changed(count)
    var found: [(blocks: Int, region: PictureRegion)] = []
    for start in flags.indices where flags[start] { found.append(takeRegion(at: start, from: &flags)) }
    let largest = found.enumerated().sorted { ($1.element.blocks, $0.offset) < ($0.element.blocks, $1.offset) }
    return largest.prefix(Self.regions).map(\.element.region).sorted { ($0.y, $0.x) < ($1.y, $1.x) }
  }

  /// Returns whether each block differs, row by row.
  ///
  /// - Parameter count: as in ``regions(ofBlocks:)``.
  package func changed(_ count: Int?) -> [Bool] {
    guard let count else {
      return sums.indices.map { index in
        let (column, row) = (index % columns, index / columns)
        let width = min(ChangedBlocks.side, size.width - column * ChangedBlocks.side)
        let height = min(ChangedBlocks.side, size.height - row * ChangedBlocks.side)
        return Int(sums[index]) > Self.noise * width * height
      }
    }
    var flags = [Bool](repeating: false, count: sums.count)
    let order = sums.indices.filter { sums[$0] > 0 }.sorted { (sums[$1], $0) < (sums[$0], $1) }
    for index in order.prefix(count) { flags[index] = true }
    return flags
  }

  /// Returns the bounds of the blocks that touch a block, and takes them away.
  private func takeRegion(at start: Int, from flags: inout [Bool]) -> (blocks: Int, region: PictureRegion) {
    var open = [start]
    flags[start] = false
    var (left, right, top, bottom, blocks) = (columns, 0, rows, 0, 0)
    while let index = open.popLast() {
      let (column, row) = (index % columns, index / columns)
      blocks += 1
      (left, right, top, bottom) = (min(left, column), max(right, column), min(top, row), max(bottom, row))
      for y in max(0, row - 1)...min(rows - 1, row + 1) {
        for x in max(0, column - 1)...min(columns - 1, column + 1) where flags[y * columns + x] {
          flags[y * columns + x] = false
          open.append(y * columns + x)
        }
      }
    }
    let side = ChangedBlocks.side
    let (x, y) = (left * side, top * side)
    return (
      blocks,
      PictureRegion(
        x: x, y: y, width: min(size.width, (right + 1) * side) - x, height: min(size.height, (bottom + 1) * side) - y)
    )
  }
}
