// The regions of a picture that are read: boxes around the blocks that changed, wide enough that they cut few words. Pure.

import FrameBatches

package enum TextRegions {
  /// Blocks that a box is wider than the changed blocks: 96 pixels at each side, 48 above and below. Measured in
  /// `Benchmarks/LIMITS.md`.
  static let (across, down) = (6, 3)

  /// Returns disjoint boxes around changed blocks, in pixels, from top to bottom.
  ///
  /// - Parameter changed: whether each block of 16×16 pixels differs, row by row.
  package static func boxes(around changed: [Bool], in size: PixelSize) -> [PictureRegion] {
    let (columns, rows) = ChangedBlocks.grid(width: size.width, height: size.height)
    guard changed.count == columns * rows else { return [] }
    var flags = widened(changed, columns: columns, rows: rows)
    var boxes: [Box] = []
    for index in flags.indices where flags[index] {
      boxes = merged(boxes, Box(at: index, takenFrom: &flags, columns: columns, rows: rows))
    }
    return boxes.sorted { ($0.top, $0.left) < ($1.top, $1.left) }.map { $0.region(in: size) }
  }

  /// Returns all of a picture.
  package static func whole(_ size: PixelSize) -> [PictureRegion] {
    [PictureRegion(x: 0, y: 0, width: size.width, height: size.height)]
  }

  private static func widened(_ flags: [Bool], columns: Int, rows: Int) -> [Bool] {
    var wide = flags
    for row in 0..<rows {
      widen(in: flags, to: &wide, from: row * columns, step: 1, count: columns, by: across)
    }
    var result = wide
    for column in 0..<columns { widen(in: wide, to: &result, from: column, step: columns, count: rows, by: down) }
    return result
  }

  /// Marks the blocks of a row or column that are at most `margin` away from a marked one.
  private static func widen(
    in flags: [Bool], to result: inout [Bool], from start: Int, step: Int, count: Int, by margin: Int
  ) {
    var until = -1
    for place in 0..<count {
      if flags[start + place * step] {
        for earlier in max(0, place - margin)..<place { result[start + earlier * step] = true }
        until = place + margin
      }
      if place <= until { result[start + place * step] = true }
    }
  }

  /// Adds a box, joined with those that it touches.
  private static func merged(_ boxes: [Box], _ new: Box) -> [Box] {
    var (result, box) = (boxes, new)
    while true {
      let rest = result.filter { !$0.overlaps(box) }
      if rest.count == result.count { return result + [box] }
      for other in result where other.overlaps(box) { box = box.union(other) }
      result = rest
    }
  }
}

/// A box in blocks; right and bottom are outside.
private struct Box {
  var left: Int
  var top: Int
  var right: Int
  var bottom: Int

  /// Takes connected blocks away.
  init(at start: Int, takenFrom flags: inout [Bool], columns: Int, rows: Int) {
    (left, top, right, bottom) = (columns, rows, 0, 0)
    var open = [start]
    flags[start] = false
    while let index = open.popLast() {
      let (column, row) = (index % columns, index / columns)
      (left, right) = (min(left, column), max(right, column + 1))
      (top, bottom) = (min(top, row), max(bottom, row + 1))
      for (x, y) in [(column - 1, row), (column + 1, row), (column, row - 1), (column, row + 1)]
      where (0..<columns).contains(x) && (0..<rows).contains(y) && flags[y * columns + x] {
        flags[y * columns + x] = false
        open.append(y * columns + x)
      }
    }
  }

  func overlaps(_ other: Box) -> Bool {
    left < other.right && other.left < right && top < other.bottom && other.top < bottom
  }

  func union(_ other: Box) -> Box {
    var box = self
    (box.left, box.right) = (min(left, other.left), max(right, other.right))
    (box.top, box.bottom) = (min(top, other.top), max(bottom, other.bottom))
    return box
  }

  func region(in size: PixelSize) -> PictureRegion {
    let side = ChangedBlocks.side
    return PictureRegion(
      x: left * side, y: top * side, width: min(size.width, right * side) - left * side,
      height: min(size.height, bottom * side) - top * side)
  }
}

/// Where a picture differs from the one before: all of it for a first picture.
package struct TextChange {
  package let regions: [PictureRegion]
  /// Whether each block differs; nil for all.
  private let changed: [Bool]?
  private let columns: Int
  private let rows: Int

  /// - Parameter changed: whether each block differs, row by row; nil for all.
  package init(of changed: [Bool]?, in size: PixelSize) {
    (columns, rows) = ChangedBlocks.grid(width: size.width, height: size.height)
    self.changed = changed
    regions = changed.map { TextRegions.boxes(around: $0, in: size) } ?? TextRegions.whole(size)
  }

  /// Whether a block in which a box lies differs.
  package func touches(_ box: PictureRegion) -> Bool {
    guard let changed else { return true }
    let side = ChangedBlocks.side
    let (left, right) = (max(0, box.x / side), min(columns, (box.x + box.width + side - 1) / side))
    let (top, bottom) = (max(0, box.y / side), min(rows, (box.y + box.height + side - 1) / side))
    guard left < right, top < bottom else { return false }
    return (top..<bottom).contains { row in changed[row * columns + left..<row * columns + right].contains(true) }
  }
}
