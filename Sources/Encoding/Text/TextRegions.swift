// The regions of a picture that are read: boxes around the blocks that changed and the known words beside them, wide enough that they
// cut few words. Pure.

import FrameBatches

package enum TextRegions {
  /// Blocks that a box is wider than the changed blocks: 96 pixels at each side, 48 above and below. Measured in
  /// `Benchmarks/LIMITS.md`.
  static let (across, down) = (6, 3)

  /// Returns disjoint boxes around changed blocks, in pixels, from top to bottom.
  ///
  /// - Parameters:
  ///   - changed: whether each block of 16×16 pixels differs, row by row.
  ///   - words: the boxes of the words that are known. A box around a change has all of each word that the change touches or follows.
  package static func boxes(
    around changed: [Bool], in size: PixelSize, words: [PictureRegion] = []
  ) -> [PictureRegion] {
    let (columns, rows) = ChangedBlocks.grid(width: size.width, height: size.height)
    guard changed.count == columns * rows else { return [] }
    var flags = widened(changed, columns: columns, rows: rows)
    for word in words {
      // A letter that is typed is less than a letter's height away; a reader wants some background around the words.
      let near = ChangedBlocks.places(of: word.widened(across: word.height, down: 0), columns: columns, rows: rows)
      guard near.contains(where: { changed[$0] }) else { continue }
      let whole = word.widened(across: word.height, down: word.height / 2)
      for place in ChangedBlocks.places(of: whole, columns: columns, rows: rows) { flags[place] = true }
    }
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

extension PictureRegion {
  /// Returns the region with some pixels more at each side; it may reach beyond the picture.
  fileprivate func widened(across: Int, down: Int) -> PictureRegion {
    PictureRegion(x: x - across, y: y - down, width: width + 2 * across, height: height + 2 * down)
  }
}

extension ChangedBlocks {
  /// Returns the indices of the blocks in which a region lies, row by row.
  fileprivate static func places(of region: PictureRegion, columns: Int, rows: Int) -> [Int] {
    let (left, right) = (max(0, region.x / side), min(columns, (region.x + region.width + side - 1) / side))
    let (top, bottom) = (max(0, region.y / side), min(rows, (region.y + region.height + side - 1) / side))
    guard left < right, top < bottom else { return [] }
    return (top..<bottom).flatMap { row in row * columns + left..<row * columns + right }
  }
}

/// Where a picture differs from the one before: all of it for a first picture.
package struct TextChange {
  package let regions: [PictureRegion]
  /// Whether each block differs; nil for all.
  private let changed: [Bool]?
  private let columns: Int
  private let rows: Int

  /// - Parameters:
  ///   - changed: whether each block differs, row by row; nil for all.
  ///   - words: the boxes of the words that were on screen before.
  package init(of changed: [Bool]?, in size: PixelSize, words: [PictureRegion] = []) {
    (columns, rows) = ChangedBlocks.grid(width: size.width, height: size.height)
    self.changed = changed
    regions = changed.map { TextRegions.boxes(around: $0, in: size, words: words) } ?? TextRegions.whole(size)
  }

  /// Whether a block in which a box lies differs.
  package func touches(_ box: PictureRegion) -> Bool {
    guard let changed else { return true }
    return ChangedBlocks.places(of: box, columns: columns, rows: rows).contains { changed[$0] }
  }
}
