// The blocks of a GIF (GIF89a) that are needed for its first picture. libavcodec shows as much of a picture as there is, so that its
// codes are counted first.

import FrameBatches

enum GIFBlocks {
  /// Returns the file with its first picture alone.
  ///
  /// - Throws: ``RefusedPicture`` where the picture does not fill the screen, or is damaged.
  static func first(of file: [UInt8]) throws(RefusedPicture) -> [UInt8] {
    let invalid = RefusedPicture(reason: "invalid data")
    guard file.count > 13 else { throw invalid }
    var offset = 13 + paletteBytes(file[10])
    var blocks = file.prefix(offset)
    // The latest control block tells the transparent colour.
    var control: ArraySlice<UInt8> = []
    while offset + 1 < file.count {
      switch file[offset] {
      case 0x21:
        guard let end = endOfParts(of: file, from: offset + 2) else { throw invalid }
        if file[offset + 1] == 0xF9 { control = file[offset..<end] }
        offset = end
      case 0x2C:
        // Position, size, flags, the palette, and the number of bits of the first codes.
        guard offset + 10 < file.count else { throw invalid }
        let data = offset + 10 + paletteBytes(file[offset + 9])
        guard data < file.count, let end = endOfParts(of: file, from: data + 1) else { throw invalid }
        guard file[offset + 1..<offset + 5].allSatisfy({ $0 == 0 }), file[offset + 5..<offset + 9] == file[6..<10]
        else {
          throw RefusedPicture(reason: "a GIF whose first picture does not fill it is not supported")
        }
        let pixels = file[6..<8].littleEndian * file[8..<10].littleEndian
        guard hasPixels(pixels, parts: file[data + 1..<end], firstBits: Int(file[data])) else { throw invalid }
        blocks += control + file[offset..<end]
        return Array(blocks + [0x3B])
      default: throw invalid
      }
    }
    throw invalid
  }

  private static func paletteBytes(_ flags: UInt8) -> Int { flags & 0x80 == 0 ? 0 : 6 << Int(flags & 7) }

  /// Returns the end of parts that each begin with their size; the last one is empty.
  private static func endOfParts(of file: [UInt8], from start: Int) -> Int? {
    var offset = start
    while offset < file.count {
      let size = Int(file[offset])
      offset += 1 + size
      if size == 0 { return offset }
    }
    return nil
  }

  /// Whether the codes (LZW) have so many pixels. Only the lengths of the strings matter.
  ///
  /// - Parameter firstBits: the bits of a pixel; codes begin with one bit more.
  private static func hasPixels(_ pixels: Int, parts: ArraySlice<UInt8>, firstBits: Int) -> Bool {
    guard (1...8).contains(firstBits) else { return false }
    let clear = 1 << firstBits
    var lengths = [Int](repeating: 1, count: 4_096)
    var (next, bits, found) = (clear + 2, firstBits + 1, 0)
    var previous: Int?
    var (waiting, count) = (0, 0)
    var part = parts.startIndex
    while part < parts.endIndex, parts[part] > 0 {
      let end = min(part + 1 + Int(parts[part]), parts.endIndex)
      for byte in parts[part + 1..<end] {
        waiting |= Int(byte) << count
        count += 8
        while count >= bits {
          let code = waiting & (1 << bits - 1)
          waiting >>= bits
          count -= bits
          if code == clear {
            (next, bits, previous) = (clear + 2, firstBits + 1, nil)
            continue
          }
          // The end, or a code without a string.
          let isKnown = previous == nil ? code < clear : code <= next && code < lengths.count
          guard code != clear + 1, isKnown else { return false }
          if let previous, next < lengths.count {
            lengths[next] = lengths[previous] + 1
            next += 1
            if next == 1 << bits, bits < 12 { bits += 1 }
          }
          found += lengths[code]
          if found >= pixels { return true }
          previous = code
        }
      }
      part = end
    }
    return false
  }
}
