import Glibc

/// A file that grows by whole pieces. It is closed when the last reference goes.
package final class AppendFile {
  package let path: String
  package let descriptor: Int32
  /// The bytes that are whole pieces.
  package private(set) var size: Int

  /// Opens an existing file.
  package convenience init(_ path: String, size: Int) throws(DiskError) {
    let descriptor = try check("open", path) { open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW) }
    self.init(owning: descriptor, path: path, size: size)
  }

  /// - Parameter descriptor: open for writing; this object closes it.
  package init(owning descriptor: Int32, path: String, size: Int) {
    (self.descriptor, self.path, self.size) = (descriptor, path, size)
  }

  deinit { close(descriptor) }

  /// Sets where the next piece begins: what is behind is no whole piece.
  package func forget(behind size: Int) { self.size = size }

  /// Appends bytes. After a failure, append the same bytes again.
  ///
  /// - Parameter isDurable: whether all bytes so far reach the disk before this returns. Others survive the process, not a power cut.
  package func append(_ bytes: [UInt8], isDurable: Bool) throws(DiskError) {
    // A failed call may have left a part of a line.
    try check("truncate", path) { ftruncate(descriptor, off_t(size)) }
    try writeWhole(bytes, to: descriptor, at: size, path: path)
    if isDurable { try check("fsync", path) { fsync(descriptor) } }
    size += bytes.count
  }
}
