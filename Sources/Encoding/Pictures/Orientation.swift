// The orientation of an image: EXIF's tag 0x0112 (CIPA DC-008, 4.6.4), wherever an image format stores it.

import FrameBatches

/// Mirrored first, then turned.
struct Orientation: Equatable {
  /// Left and right exchanged.
  let isMirrored: Bool
  /// Clockwise.
  let quarterTurns: Int

  static let upright = Orientation(isMirrored: false, quarterTurns: 0)
}

extension Orientation {
  /// - Parameter tag: EXIF's value, 1 to 8; any other value means upright.
  private init(tag: Int) {
    let turns = [1: 0, 2: 0, 3: 2, 4: 2, 5: 3, 6: 1, 7: 1, 8: 3][tag] ?? 0
    self.init(isMirrored: [2, 4, 5, 7].contains(tag), quarterTurns: turns)
  }

  /// The orientation of an image file, which is parsed when it is a JPEG; upright when the file has no valid one.
  init(of file: [UInt8], kind: ImageKind, jpeg: JPEGFile?) {
    let exif =
      switch kind {
      case .jpeg: jpeg.flatMap(Self.segment)
      case .png: ImageChunk.chunks(of: file, kind, from: 8).first { $0.name == "eXIf" }?.body
      case .webp: ImageChunk.chunks(of: file, kind, from: 12).first { $0.name == "EXIF" }?.body
      }
    let header = "Exif\0\0".utf8
    let tiff = exif.map { $0.starts(with: header) ? $0.dropFirst(header.count) : $0 }
    self.init(tag: tiff.flatMap(Self.tag) ?? 1)
  }

  /// Returns the body of the APP1 segment with EXIF.
  private static func segment(of jpeg: JPEGFile) -> ArraySlice<UInt8>? {
    jpeg.segments.prefix { $0.marker != 0xDA }.filter { $0.marker == 0xE1 }.map(jpeg.body)
      .first { $0.starts(with: "Exif\0\0".utf8) }
  }

  /// Reads the orientation in a TIFF's first directory.
  private static func tag(in tiff: ArraySlice<UInt8>) -> Int? {
    let isLittleEndian = tiff.starts(with: "II".utf8)
    func number(at offset: Int, _ count: Int) -> Int? {
      let start = tiff.startIndex + offset
      guard start + count <= tiff.endIndex else { return nil }
      let digits = tiff[start..<start + count]
      return isLittleEndian ? digits.littleEndian : digits.bigEndian
    }
    guard isLittleEndian || tiff.starts(with: "MM".utf8), number(at: 2, 2) == 42,
      let directory = number(at: 4, 4), let count = number(at: directory, 2)
    else { return nil }
    for index in 0..<count {
      let entry = directory + 2 + 12 * index
      guard let tag = number(at: entry, 2) else { return nil }
      // One SHORT, in the first two of the value's four bytes.
      if tag == 0x0112 { return number(at: entry + 8, 2) }
    }
    return nil
  }
}
