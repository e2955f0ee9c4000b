// The number of samples that an MP4 says it has. libavformat allocates memory for each when it has read the tables, and a few
// bytes of a table can name a hundred million.

import CLinux
import FileSystem
import Glibc

package enum MP4SampleBudget {
  /// More than a day at 30 pictures a second has; libavformat takes some 60 bytes for each.
  private static let maximumSamples = 4_000_000
  /// Of boxes other than media, in bytes: 4 million samples take some 112 MB.
  private static let maximumScanned = 128 << 20

  /// Whether libavformat can open a file.
  package static func isBearable(_ file: any ByteSource) -> Bool {
    var (count, scanned) = (Count(bytes: file.count), 0)
    let isRead = MP4Boxes.read(file, most: maximumSamples) { type, range in
      if ["mdat", "free", "skip"].contains(type) { return true }
      scanned += range.count
      guard scanned <= maximumScanned else { return false }
      count.add(file.bytes(at: range.lowerBound, range.count))
      return true
    }
    return isRead && scanned <= maximumScanned && count.isBearable
  }

  /// Counts the rows of tables. It finds them by their names anywhere, because a demuxer reads them in wrong boxes, too.
  private struct Count {
    let bytes: Int
    var samples = 0
    var runs = 0
    var edits = 1

    /// A file has fewer samples than bytes, and each edit lists all samples again.
    var isBearable: Bool {
      let limit = min(bytes, maximumSamples)
      return samples <= limit && runs <= 2 * limit && samples <= maximumSamples / edits
    }

    mutating func add(_ box: [UInt8]) {
      // The number of rows follows version and flags; in tables of sizes the size of all samples comes between.
      for start in box.offsets(behind: "stsz") + box.offsets(behind: "stz2") { samples += number(at: start + 8, box) }
      for start in box.offsets(behind: "trun") { samples += number(at: start + 4, box) }
      for start in box.offsets(behind: "elst") { edits = max(edits, number(at: start + 4, box)) }
      for start in box.offsets(behind: "stts") + box.offsets(behind: "ctts") {
        let rows = min(number(at: start + 4, box), (box.count - start) / 8)
        for row in 0..<max(0, rows) { runs += number(at: start + 8 + 8 * row, box) }
      }
    }

    private func number(at offset: Int, _ box: [UInt8]) -> Int {
      offset + 4 <= box.count ? box[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) } : 0
    }
  }
}

extension [UInt8] {
  fileprivate func offsets(behind text: String) -> [Int] {
    unsafe withUnsafeBytes { unsafe $0.offsets(behind: text) }
  }
}

extension UnsafeRawBufferPointer {
  /// Returns the offset behind each occurrence of a text.
  package func offsets(behind text: String) -> [Int] {
    guard let start = baseAddress else { return [] }
    let text = Array(text.utf8)
    var (offsets, offset) = ([Int](), 0)
    while let found = unsafe memmem(start + offset, count - offset, text, text.count) {
      offset = unsafe UnsafeRawPointer(found) - start + text.count
      offsets.append(offset)
    }
    return offsets
  }
}

/// The boxes at the top level of a file.
package enum MP4Boxes {
  /// Calls `body` for each box until it returns false, or until the bytes that follow are no box.
  ///
  /// - Parameters:
  ///   - most: the number of boxes that are read.
  ///   - body: gets the type and the range with the header. A box longer than the rest of the file ends with the file.
  /// - Returns: false if there are more than `most` boxes.
  package static func read(
    _ file: any ByteSource, most: Int, _ body: (_ type: String, _ range: Range<Int>) -> Bool
  ) -> Bool {
    var (offset, boxes) = (0, 0)
    while file.count - offset >= 8 {
      let head = file.bytes(at: offset, min(16, file.count - offset))
      guard head.count >= 8 else { break }
      func number(_ range: Range<Int>) -> Int { head[range].reduce(0) { $0 << 8 | Int($1) } }
      var length = number(0..<4)
      // 1: the length has 64 bits and follows the type. 0: the box ends with the file.
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
