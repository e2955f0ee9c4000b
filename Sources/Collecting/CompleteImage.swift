import FileSystem
import FrameBatches
import Glibc

/// A cheap check whether an image is written to its end, by its first and last bytes.
enum CompleteImage {
  /// The bytes that the check needs from each end of a file.
  static let edge = 12
  /// The last chunk of a PNG: no data, `IEND`, and its checksum.
  private static let lastChunk: [UInt8] = [0, 0, 0, 0, 0x49, 0x45, 0x4E, 0x44, 0xAE, 0x42, 0x60, 0x82]

  /// The reason why a file is no complete image; nil if it is one.
  ///
  /// - Parameters:
  ///   - head: the first ``edge`` bytes, or all of a shorter file.
  ///   - tail: the last ``edge`` bytes, or all of a shorter file.
  static func fault(head: [UInt8], tail: [UInt8], size: Int) -> String? {
    guard size > 0 else { return "empty" }
    guard let kind = ImageKind(of: head) else {
      if case .otherImage(let other) = FileKind(of: head) { return other.refusal.text }
      return "not a JPEG, PNG or WebP image"
    }
    switch kind {
    case .jpeg: return tail.suffix(2) == [0xFF, 0xD9] ? nil : "the JPEG has no end"
    case .png: return tail == lastChunk ? nil : "the PNG has no end"
    case .webp:
      let content = head[4..<8].reversed().reduce(0) { $0 << 8 | Int($1) }
      // Some writers count the padding of an odd size, others do not write it.
      return (content + 8...content + 8 + content % 2).contains(size) ? nil : "the WebP has another size than it says"
    }
  }

  /// The same for a whole file in memory.
  static func fault(in bytes: [UInt8]) -> String? {
    fault(head: Array(bytes.prefix(edge)), tail: Array(bytes.suffix(edge)), size: bytes.count)
  }

  /// The same for a file on the disk.
  static func fault(in file: OpenFile, path: String) throws(DiskError) -> String? {
    let count = min(edge, file.size)
    let head = try read(count, at: 0, file, path)
    return fault(head: head, tail: try read(count, at: file.size - count, file, path), size: file.size)
  }

  private static func read(_ count: Int, at offset: Int, _ file: OpenFile, _ path: String) throws(DiskError) -> [UInt8]
  {
    var bytes = [UInt8](repeating: 0, count: count)
    while true {
      let read = pread(file.descriptor, &bytes, count, off_t(offset))
      if read >= 0 { return Array(bytes[..<read]) }
      if errno != EINTR { throw DiskError("read", path) }
    }
  }
}
