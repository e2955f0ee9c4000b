import FileSystem
import Glibc

/// A file that grows by whole pieces.
final class AppendFile {
  private let path: String
  private let descriptor: Int32
  /// The bytes that are whole pieces.
  private(set) var size: Int

  /// Opens an existing file.
  init(_ path: String, size: Int) throws(DiskError) {
    self.path = path
    self.size = size
    descriptor = try check("open", path) { open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW) }
  }

  deinit { close(descriptor) }

  /// Appends bytes. After a failure, append the same bytes again.
  ///
  /// - Parameter isDurable: whether all bytes so far reach the disk before this returns. Others survive the process, not a power cut.
  func append(_ bytes: [UInt8], isDurable: Bool) throws(DiskError) {
    // A failed call may have left a part of a line.
    try check("truncate", path) { ftruncate(descriptor, off_t(size)) }
    var written = 0
    while written < bytes.count {
      let count = bytes.withUnsafeBytes {
        pwrite(descriptor, $0.baseAddress! + written, $0.count - written, off_t(size + written))
      }
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { throw DiskError("write", path) }
      written += count
    }
    if isDurable { try check("fsync", path) { fsync(descriptor) } }
    size += bytes.count
  }
}
