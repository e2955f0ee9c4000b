// The changed area of a picture: its blocks of 16 by 16 pixels in which a sample of luma or chroma differs from another picture.

import CPixels

/// The blocks in which two pictures of one size differ.
package struct ChangedBlocks {
  /// The member of a manifest's frame.
  package static let key = "changedBlocks"
  /// Pixels of a block's side. Blocks at the right and lower edge may be smaller.
  package static let side = 16

  package let columns: Int
  package let rows: Int
  /// The number of blocks that differ.
  package let count: Int
  /// Whether each block differs, row by row.
  private let changed: [UInt8]

  /// Returns the number of blocks of a picture.
  package static func total(width: Int, height: Int) -> Int {
    let (columns, rows) = grid(width: width, height: height)
    return columns * rows
  }

  /// Returns the blocks of a picture, beside each other and above each other.
  static func grid(width: Int, height: Int) -> (columns: Int, rows: Int) {
    ((width + side - 1) / side, (height + side - 1) / side)
  }

  /// Returns the number of blocks in which two pictures differ; nil if they have different sizes.
  package static func count(in picture: Picture, since other: Picture) -> Int? {
    picture === other ? 0 : ChangedBlocks(in: picture, since: other)?.count
  }

  /// Compares two pictures of one size.
  package init?(in picture: Picture, since other: Picture) {
    guard (picture.width, picture.height) == (other.width, other.height) else { return nil }
    (columns, rows) = Self.grid(width: picture.width, height: picture.height)
    var (one, two) = (picture.blockPlanes, other.blockPlanes)
    var count = 0
    changed = unsafe [UInt8](unsafeUninitializedCapacity: columns * rows) { flags, initialized in
      count = unsafe cpx_changed_blocks(&one, &two, flags.baseAddress)
      initialized = flags.count
    }
    self.count = count
  }

  package subscript(column column: Int, row row: Int) -> Bool { changed[row * columns + column] != 0 }
}

extension Picture {
  fileprivate var blockPlanes: cpx_planes {
    let planes = unsafe planes
    return unsafe cpx_planes(
      samples: (UnsafePointer(planes[0].start), UnsafePointer(planes[1].start), UnsafePointer(planes[2].start)),
      strides: (planes[0].stride, planes[1].stride, planes[2].stride), width: codedWidth, height: codedHeight)
  }
}
