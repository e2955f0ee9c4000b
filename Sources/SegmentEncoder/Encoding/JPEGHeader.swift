// A JPEG's first frame header (ITU-T T.81, B.2.2): what process coded it, and how large it is.

struct JPEGHeader {
  /// The marker's second byte, SOF0 to SOF15.
  let process: UInt8
  let bitsPerSample: Int
  let width: Int
  let height: Int

  init?(of file: [UInt8]) {
    func u16(_ offset: Int) -> Int { Int(file[offset]) << 8 | Int(file[offset + 1]) }
    var offset = 2
    while offset + 9 <= file.count {
      guard file[offset] == 0xFF else { return nil }
      let marker = file[offset + 1]
      switch marker {
      case 0xFF: offset += 1  // fill byte
      case 0x01, 0xD0...0xD8: offset += 2
      case 0xC0...0xC3, 0xC5...0xC7, 0xC9...0xCB, 0xCD...0xCF:
        process = marker
        bitsPerSample = Int(file[offset + 4])
        (width, height) = (u16(offset + 7), u16(offset + 5))
        return
      case 0xD9, 0xDA: return nil
      default: offset += 2 + max(2, u16(offset + 2))
      }
    }
    return nil
  }

  /// Why a file like this is refused, whatever else is in it: libavcodec knows nothing of it, or shows it too dark.
  var reason: String? {
    switch process {
    case 0xC5...0xC7, 0xCD...0xCF: "a hierarchical JPEG is not supported"
    case 0xC9...0xCB: "a JPEG with arithmetic coding is not supported"
    default: bitsPerSample == 8 ? nil : "a JPEG of \(bitsPerSample) bits a sample, not 8, is not supported"
    }
  }
}

/// A JPEG's segments before its first scan (ITU-T T.81, B.1.1).
enum JPEGComments {
  /// The same picture without comments: libavcodec takes some old programs' for orders, and turns the picture upside down.
  static func removed(from file: [UInt8]) -> [UInt8] {
    var result: [UInt8]?
    var offset = 2
    while offset + 4 <= file.count, file[offset] == 0xFF {
      let marker = file[offset + 1]
      let isFill = marker == 0xFF
      let hasBody = !isFill && marker != 0x01 && !(0xD0...0xD8).contains(marker)
      guard marker != 0xDA, marker != 0xD9 else { break }
      let size = hasBody ? 2 + max(2, Int(file[offset + 2]) << 8 | Int(file[offset + 3])) : isFill ? 1 : 2
      let end = min(offset + size, file.count)
      if marker == 0xFE {
        result = result ?? Array(file[..<offset])
      } else {
        result?.append(contentsOf: file[offset..<end])
      }
      offset = end
    }
    result?.append(contentsOf: file[offset...])
    return result ?? file
  }
}
