// How many samples an MP4 says it has. libavformat takes memory for each as soon as it has read the tables, and a few bytes of
// a table can name a hundred million.

import CLinux
import FileSystem
import Glibc

package enum MP4SampleBudget {
  /// More than a day at 30 pictures a second has; libavformat takes some 60 bytes for each.
  private static let most = 4_000_000
  /// Of boxes that are no media, in bytes: so many samples take some 112 MB.
  private static let maximumScanned = 128 << 20

  /// Whether a file can be opened.
  package static func isBearable(_ file: any ByteSource) -> Bool {
    var (census, scanned, isShort) = (Count(bytes: file.count), 0, true)
    let isRead = MP4Boxes.read(file, most: most) { type, range in
      if ["mdat", "free", "skip"].contains(type) { return true }
      scanned += range.count
      isShort = scanned <= maximumScanned
      if isShort { file.bytes(at: range.lowerBound, range.count).withUnsafeBytes { census.add($0) } }
      return isShort
    }
    return isRead && isShort && census.isBearable
  }

  /// Found wherever their names are: a demuxer finds them in boxes that they do not belong in, too.
  private struct Count {
    private let bytes: Int
    private var samples = 0
    private var runs = 0
    private var edits = 1

    init(bytes: Int) { self.bytes = bytes }

    /// No file has more samples than bytes; and each edit takes its own.
    var isBearable: Bool {
      let limit = min(bytes, most)
      return samples <= limit && runs <= 2 * limit && samples <= most / edits
    }

    mutating func add(_ box: UnsafeRawBufferPointer) {
      // Behind version and flags: a number of rows; of sizes it comes after the size of all.
      for place in places(of: "stsz", in: box) + places(of: "stz2", in: box) { samples += number(at: place + 8, box) }
      for place in places(of: "trun", in: box) { samples += number(at: place + 4, box) }
      for place in places(of: "elst", in: box) { edits = max(edits, number(at: place + 4, box)) }
      for place in places(of: "stts", in: box) + places(of: "ctts", in: box) {
        let rows = min(number(at: place + 4, box), (box.count - place) / 8)
        for row in 0..<max(0, rows) { runs += number(at: place + 8 + 8 * row, box) }
      }
    }

    private func places(of name: StaticString, in box: UnsafeRawBufferPointer) -> [Int] {
      guard let start = box.baseAddress else { return [] }
      var (places, offset) = ([Int](), 0)
      while let found = memmem(start + offset, box.count - offset, name.utf8Start, 4) {
        offset = UnsafeRawPointer(found) - start + 4
        places.append(offset)
      }
      return places
    }

    private func number(at offset: Int, _ box: UnsafeRawBufferPointer) -> Int {
      offset + 4 <= box.count ? Int(UInt32(bigEndian: box.loadUnaligned(fromByteOffset: offset, as: UInt32.self))) : 0
    }
  }
}

/// The boxes at the top of a file, without what is in them.
package enum MP4Boxes {
  /// Calls `body` for each until it returns false, or what follows is no box.
  ///
  /// - Parameters:
  ///   - most: the number of boxes that are read.
  ///   - body: gets the type and the place, header included; a box that says that it is longer than the file ends with it.
  /// - Returns: whether there were not more boxes.
  package static func read(
    _ file: any ByteSource, most: Int, _ body: (_ type: String, _ place: Range<Int>) -> Bool
  ) -> Bool {
    var (offset, boxes) = (0, 0)
    while file.count - offset >= 8 {
      let head = file.bytes(at: offset, min(16, file.count - offset))
      guard head.count >= 8 else { break }
      func number(_ range: Range<Int>) -> Int { head[range].reduce(0) { $0 << 8 | Int($1) } }
      var length = number(0..<4)
      // In 64 bits behind the type; or all that is left.
      if length == 1 && head.count == 16 { length = number(8..<16) & .max }
      if length == 0 || length > file.count - offset { length = file.count - offset }
      guard length >= 8 else { break }
      boxes += 1
      guard boxes <= most else { return false }
      guard body(String(decoding: head[4..<8], as: UTF8.self), offset..<offset + length) else { break }
      offset += length
    }
    return true
  }
}
