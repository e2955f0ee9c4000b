// Checks that a JPEG file has its whole picture. A decoder accepts a file without its last scans, and shows it grey, coarse, or
// with earlier contents of its memory.

import FrameBatches

enum JPEGScans {
  /// Whether the scans cover every component, and in a progressive file every bit of every coefficient; and whether each
  /// component's quantisers come before them: without quantisers libavcodec shows grey.
  static func areComplete(_ file: JPEGFile) -> Bool {
    var process: UInt8 = 0
    var isProgressive: Bool { process == 0xC2 }
    var quantisers: Set<UInt8> = []
    /// The number of each component's quantiser.
    var quantiser: [UInt8: UInt8] = [:]
    /// For each component the number of missing bits of its 64 coefficients; 16 before the first scan.
    var missing: [UInt8: [UInt8]] = [:]
    for segment in file.segments {
      let body = file.body(of: segment)
      switch segment.marker {
      case _ where segment.isFrame:
        // A frame header (ITU-T T.81, B.2.2): precision, height, width, then 3 bytes a component.
        guard missing.isEmpty, body.count >= 6 else { return false }
        process = segment.marker
        let count = Int(body[body.startIndex + 5])
        guard body.count >= 6 + 3 * count else { return false }
        for index in 0..<count {
          let component = body.startIndex + 6 + 3 * index
          missing[body[component]] = Array(repeating: 16, count: isProgressive ? 64 : 1)
          quantiser[body[component]] = body[component + 2]
        }
      case 0xDB: quantisers.formUnion(tables(body))
      case 0xDA:
        guard take(body, isProgressive, &missing) else { return false }
        // Lossless coding has no quantisers.
        let scanned = quantiser.filter { missing[$0.key]?[0] != 16 }.values
        guard process == 0xC3 || scanned.allSatisfy(quantisers.contains) else { return false }
      default: break
      }
    }
    return !missing.isEmpty && missing.values.allSatisfy { $0.allSatisfy { $0 == 0 } }
  }

  /// Reads a scan header (B.2.3): components, then the first and last coefficient and the bit position that they reach.
  private static func take(
    _ body: ArraySlice<UInt8>, _ isProgressive: Bool, _ missing: inout [UInt8: [UInt8]]
  ) -> Bool {
    guard let count = body.first.map(Int.init), body.count >= 1 + 2 * count + 3 else { return false }
    let tail = body.startIndex + 1 + 2 * count
    for index in 0..<count {
      let component = body[body.startIndex + 1 + 2 * index]
      guard var bits = missing[component] else { return false }
      if isProgressive {
        let (first, last) = (Int(body[tail]), Int(body[tail + 1]))
        guard first <= last, last < 64 else { return false }
        for coefficient in first...last { bits[coefficient] = body[tail + 2] & 15 }
      } else {
        bits[0] = 0
      }
      missing[component] = bits
    }
    return true
  }

  /// Returns the numbers of a segment's quantiser tables (B.2.4.1): each has a byte of precision and number, and 64 values.
  private static func tables(_ body: ArraySlice<UInt8>) -> [UInt8] {
    var unread = body
    var numbers: [UInt8] = []
    while let first = unread.first, case let size = first >> 4 == 0 ? 64 : 128, unread.count > size {
      numbers.append(first & 15)
      unread = unread.dropFirst(1 + size)
    }
    return numbers
  }
}
