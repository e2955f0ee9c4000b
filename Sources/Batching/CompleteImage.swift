import FileSystem
import FrameBatches
import Glibc

/// A cheap check whether an image is written to its end, by its first and last bytes, or by the headers of its boxes.
package enum CompleteImage {
  /// The bytes of the file at an offset, as many as asked for or as there are.
  private typealias Read = (_ offset: Int, _ count: Int) throws(DiskError) -> [UInt8]

  /// The bytes that the check needs from the start of a file.
  private static let headBytes = 64
  /// The last chunk of a PNG: no data, `IEND`, and its checksum.
  private static let lastChunk: [UInt8] = [0, 0, 0, 0, 0x49, 0x45, 0x4E, 0x44, 0xAE, 0x42, 0x60, 0x82]

  /// The reason why a file is no complete image; nil if it is one.
  private static func fault(size: Int, _ read: Read) throws(DiskError) -> String? {
    guard size > 0 else { return "empty" }
    let head = try read(0, min(size, headBytes))
    guard let kind = ImageKind(of: head) else {
      if case .otherImage(let other) = FileKind(of: head) { return other.refusal.text }
      return FileKind.unknown
    }
    func tail(_ count: Int) throws(DiskError) -> [UInt8] { try read(max(size - count, 0), min(size, count)) }
    let isWhole: Bool
    switch kind {
    case .jpeg: isWhole = try tail(2) == [0xFF, 0xD9]
    case .png: isWhole = try tail(lastChunk.count) == lastChunk
    case .gif: isWhole = try tail(1) == [0x3B]
    case .webp:
      let content = head[4..<8].reversed().reduce(0) { $0 << 8 | Int($1) }
      // Some writers count the padding of an odd size, others do not write it.
      return (content + 8...content + 8 + content % 2).contains(size) ? nil : "the WebP has another size than it says"
    case .bmp: isWhole = BMPHeader(head).map { $0.byteCount <= size } ?? false
    case .tiff: isWhole = hasDirectory(head, size: size)
    case .heic, .avif: isWhole = try areBoxesWhole(size: size, read)
    // A codestream without a box has no mark at its end.
    case .jpegXL: isWhole = head.starts(with: [0xFF, 0x0A]) ? true : try areBoxesWhole(size: size, read)
    }
    return isWhole ? nil : "the \(kind.name) has no end"
  }

  /// Whether the directory of a TIFF, which most programs write last, lies in the file.
  private static func hasDirectory(_ head: [UInt8], size: Int) -> Bool {
    guard head.count >= 8 else { return false }
    let digits = head.starts(with: "II".utf8) ? head[4..<8].reversed() : Array(head[4..<8])
    let offset = digits.reduce(0) { $0 << 8 | Int($1) }
    return offset >= 8 && offset + 6 <= size
  }

  /// Whether whole boxes fill the file.
  private static func areBoxesWhole(size: Int, _ read: Read) throws(DiskError) -> Bool {
    var offset = 0
    for _ in 0..<ImageBox.maximumCount where offset < size {
      let start = try read(offset, min(16, size - offset))
      guard let box = ImageBox(start[...], available: size - offset), box.isWhole else { return false }
      offset += box.size
    }
    return offset == size
  }

  /// The same for a whole file in memory.
  package static func fault(in bytes: [UInt8]) -> String? {
    // Reading memory does not fail.
    try? fault(size: bytes.count) { (offset, count) throws(DiskError) in Array(bytes[offset..<offset + count]) }
  }

  /// The same for a file on the disk.
  package static func fault(in file: OpenFile, path: String) throws(DiskError) -> String? {
    try fault(size: file.size) { (offset, count) throws(DiskError) in try read(count, at: offset, file, path) }
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
