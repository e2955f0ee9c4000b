import FileSystem
import Glibc

/// A file of lines that grows by whole, synced pieces. A line without an end is a crash while it was written; the next piece replaces it.
final class LineFile {
  let path: String
  let descriptor: Int32
  /// The file behind its whole lines.
  private let end: AppendFile

  /// Opens a file, or makes an empty one.
  init(opening path: String) throws(DiskError) {
    self.path = path
    descriptor = try check("open", path) { open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o644) }
    end = AppendFile(owning: descriptor, path: path, size: 0)
  }

  /// Returns the whole lines; none of a file beyond the limit, which is overwritten then.
  func lines(limit: Int) throws(DiskError) -> [ArraySlice<UInt8>] {
    var status = stat()
    try check("fstat", path) { fstat(descriptor, &status) }
    guard status.st_size <= limit else { return [] }
    var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
    var filled = 0
    while filled < bytes.count {
      let count = try check("read", path) {
        bytes.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress! + filled, $0.count - filled, off_t(filled)) }
      }
      if count == 0 { break }
      filled += count
    }
    let size = bytes[..<filled].lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
    end.forget(behind: size)
    return bytes[..<size].split(separator: UInt8(ascii: "\n"))
  }

  /// Appends whole lines, which are on the disk when this returns. After a failure, append the same lines again.
  func append(_ lines: [UInt8]) throws(DiskError) {
    // The name of a new file.
    if end.size == 0 { try Directory(opening: DurableFile.parentDirectory(of: path)).sync() }
    try end.append(lines, isDurable: true)
  }
}
