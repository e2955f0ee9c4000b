// How a stored picture is to be shown: EXIF's tag 0x0112 (CIPA DC-008, 4.6.4), wherever an image format keeps it.

import FrameBatches

/// Mirrored first, then turned.
struct Orientation: Equatable {
  /// Left and right exchanged.
  let isMirrored: Bool
  /// Clockwise.
  package let quarterTurns: Int

  static let upright = Orientation(isMirrored: false, quarterTurns: 0)

  init(isMirrored: Bool, quarterTurns: Int) { (self.isMirrored, self.quarterTurns) = (isMirrored, quarterTurns) }

  /// - Parameter tag: EXIF's value, 1 to 8; anything else says nothing.
  init(tag: Int) {
    let turns = [1: 0, 2: 0, 3: 2, 4: 2, 5: 3, 6: 1, 7: 1, 8: 3][tag] ?? 0
    self.init(isMirrored: [2, 4, 5, 7].contains(tag), quarterTurns: turns)
  }

  /// The orientation of an image file; upright if the file has none that can be understood.
  ///
  /// - Parameter jpeg: the file taken apart, where it is a JPEG.
  init(of file: [UInt8], kind: ImageKind, jpeg: JPEGFile?) {
    let exif =
      switch kind {
      case .jpeg: jpeg.flatMap(Self.segment)
      case .png: Self.chunk("eXIf", of: file, from: 8, isLittleEndian: false)
      case .webp: Self.chunk("EXIF", of: file, from: 12, isLittleEndian: true)
      }
    self.init(tag: exif.flatMap { Self.tag(in: $0) } ?? 1)
  }

  /// The TIFF behind `Exif` in a JPEG's APP1 segment.
  private static func segment(of jpeg: JPEGFile) -> ArraySlice<UInt8>? {
    let header = jpeg.segments.prefix { $0.marker != 0xDA }.filter { $0.marker == 0xE1 }.map(jpeg.body)
    return header.first { $0.starts(with: "Exif\0\0".utf8) }?.dropFirst(6)
  }

  /// A chunk's body: of PNG length, name, body, checksum; of RIFF name, length, body, padded to even.
  private static func chunk(_ name: String, of file: [UInt8], from start: Int, isLittleEndian: Bool) -> ArraySlice<
    UInt8
  >? {
    var offset = start
    while offset + 8 <= file.count {
      let (nameAt, sizeAt) = isLittleEndian ? (offset, offset + 4) : (offset + 4, offset)
      guard let size = number(file[...], sizeAt, 4, isLittleEndian), offset + 8 + size <= file.count else { return nil }
      let body = file[(offset + 8)..<(offset + 8 + size)]
      if file[nameAt..<nameAt + 4].elementsEqual(name.utf8) {
        return body.starts(with: "Exif\0\0".utf8) ? body.dropFirst(6) : body
      }
      offset += 8 + size + (isLittleEndian ? size % 2 : 4)
    }
    return nil
  }

  /// The orientation in a TIFF's first directory.
  private static func tag(in tiff: ArraySlice<UInt8>) -> Int? {
    let start = tiff.startIndex
    let isLittleEndian = tiff.starts(with: "II".utf8)
    guard isLittleEndian || tiff.starts(with: "MM".utf8), number(tiff, start + 2, 2, isLittleEndian) == 42,
      let directory = number(tiff, start + 4, 4, isLittleEndian),
      let count = number(tiff, start + directory, 2, isLittleEndian)
    else { return nil }
    for index in 0..<count {
      let entry = start + directory + 2 + 12 * index
      guard let tag = number(tiff, entry, 2, isLittleEndian) else { return nil }
      // One SHORT, which stands first in the value's four bytes.
      if tag == 0x0112 { return number(tiff, entry + 8, 2, isLittleEndian) }
    }
    return nil
  }

  private static func number(_ bytes: ArraySlice<UInt8>, _ offset: Int, _ count: Int, _ isLittleEndian: Bool) -> Int? {
    guard offset >= bytes.startIndex, offset + count <= bytes.endIndex else { return nil }
    let digits = bytes[offset..<offset + count]
    return (isLittleEndian ? Array(digits.reversed()) : Array(digits)).reduce(0) { $0 << 8 | Int($1) }
  }
}
