// The blocks of a GIF (GIF89a) that are needed for its first picture. libavcodec shows as much of a picture as there is, so that its
// codes are counted first.

import FrameBatches

enum GIFBlocks {
  /// Returns the file with its first picture alone.
  ///
  /// - Throws: ``RefusedPicture`` where the picture does not fill the screen, or is damaged.
  static func first(of file: [UInt8]) throws(RefusedPicture) -> [UInt8] {
    guard let gif = GIFFile(file), let picture = gif.pictures.first else {
      throw RefusedPicture(reason: "invalid data")
    }
    guard picture.fills(gif.size) else {
      throw RefusedPicture(reason: "a GIF whose first picture does not fill it is not supported")
    }
    let image = picture.bytes
    let data = image.lowerBound + 10 + GIFFile.paletteBytes(file[image.lowerBound + 9])
    let parts = file[data + 1..<image.upperBound]
    guard hasPixels(gif.size.width * gif.size.height, parts: parts, firstBits: Int(file[data])) else {
      throw RefusedPicture(reason: "invalid data")
    }
    return Array(file[gif.head] + file[picture.control] + file[image] + [0x3B])
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
