import FileSystem
import Glibc
import JSON

/// A text in a file: JSON, or lines of JSON. Parts are read when they are needed, so that a large text costs no memory.
package struct TextDocument: Sendable {
  private let file: BatchFile
  package var count: Int { file.size }

  /// - Returns: nil for a file that is not JSON by its first characters.
  /// - Throws: ``BadBatch`` for a text beyond the limits; ``DiskError``.
  init?(_ file: BatchFile, name: String, limits: Limits) throws {
    self.file = file
    let start = try bytes(0..<min(file.size, 64))
    guard Self.isJSON(start) else { return nil }
    guard file.size <= limits.unpackedBytes else {
      throw BadBatch(
        "read", name, "\(file.size) bytes, more than the limit of \(limits.unpackedBytes)",
        advice: Limits.advice("unpacked-bytes", file.size))
    }
  }

  /// Returns whether a text begins as a JSON object or array does. A byte order mark may precede it.
  package static func isJSON(_ start: some Collection<UInt8>) -> Bool {
    let mark = JSONParser.byteOrderMark
    let first = start.dropFirst(start.starts(with: mark) ? mark.count : 0).first {
      ![0x20, 0x0A, 0x0D, 0x09].contains($0)
    }
    return first == UInt8(ascii: "{") || first == UInt8(ascii: "[")
  }

  /// Reads `count` bytes, or fewer if the file has become shorter.
  func bytes(_ range: Range<Int>) throws(DiskError) -> [UInt8] { try file.bytes(range) }
}

/// A file that stays open as long as this value exists.
final class BatchFile: Sendable {
  let descriptor: Int32
  /// The size in bytes; at least one.
  let size: Int
  private let name: String

  /// Opens a regular file that is not empty.
  init(opening path: String, name: String, followingLinks: Bool) throws {
    let links = followingLinks ? 0 : O_NOFOLLOW
    let descriptor = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | links)
    guard descriptor >= 0 else {
      let failure = DiskError("open", path)
      switch failure.code {
      case ELOOP:
        throw BadBatch(
          "read", name, FileRefusal.link + (followingLinks ? " in a circle" : ""),
          advice: followingLinks ? "check the path" : "send the file or the folder that it leads to")
      case ENXIO: throw BadBatch("read", name, "not a regular file", advice: BadBatch.adviceOnForms)
      default: throw failure
      }
    }
    self.descriptor = descriptor
    self.name = name
    var status = stat()
    let code = unsafe fstat(descriptor, &status) == 0 ? 0 : errno
    size = Int(status.st_size)
    if code != 0 { throw DiskError("fstat", path, code: code) }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw BadBatch("read", name, "not a regular file", advice: BadBatch.adviceOnForms)
    }
    guard size > 0 else { throw BadBatch("read", name, "an empty file", advice: BadBatch.adviceOnForms) }
  }

  deinit { close(descriptor) }

  /// Reads `count` bytes, or fewer if the file has become shorter.
  func bytes(_ range: Range<Int>) throws(DiskError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: range.count)
    var filled = 0
    while filled < bytes.count {
      let count = try check("read", name) {
        unsafe bytes.withUnsafeMutableBytes {
          unsafe pread(descriptor, $0.baseAddress! + filled, $0.count - filled, off_t(range.lowerBound + filled))
        }
      }
      if count == 0 { break }
      filled += count
    }
    bytes.removeLast(bytes.count - filled)
    return bytes
  }
}
