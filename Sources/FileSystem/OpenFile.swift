import CLinux
import Glibc

/// Equal as long as a file has not changed.
package struct FileStamp: Sendable, Hashable {
  package let inode: UInt64
  package let size: Int64
  /// In nanoseconds since 1970.
  package let modified: Int64

  package init(inode: UInt64, size: Int64, modified: Int64) {
    (self.inode, self.size, self.modified) = (inode, size, modified)
  }

  package init(_ status: stat) {
    inode = UInt64(status.st_ino)
    size = Int64(status.st_size)
    modified = Int64(status.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(status.st_mtim.tv_nsec)
  }

  /// The stamp as a text without blanks.
  package var tag: String {
    [inode, UInt64(bitPattern: size), UInt64(bitPattern: modified)].map { String($0, radix: 36) }.joined(separator: "-")
  }
}

/// A regular file, open for reading, closed when the last reference goes.
package final class OpenFile: Sendable {
  package let descriptor: Int32
  /// In bytes.
  package let size: Int
  /// Changes when the file changes.
  package let stamp: FileStamp

  /// - Returns: nil if the name is no regular file, or a link.
  package convenience init?(_ name: String, in directory: Directory) throws(DiskError) {
    // O_NONBLOCK: opening a FIFO would wait for a writer.
    let file = openat(directory.descriptor, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)
    guard file >= 0 else {
      let failure = DiskError("open", directory.path + "/" + name)
      guard [ENOENT, ELOOP, ENXIO, ENOTDIR].contains(failure.code) else { throw failure }
      return nil
    }
    try self.init(owning: file, path: directory.path + "/" + name)
  }

  /// - Parameter file: a descriptor that this object closes.
  /// - Returns: nil if it is no regular file.
  package init?(owning file: Int32, path: String) throws(DiskError) {
    descriptor = file
    var status = stat()
    guard fstat(file, &status) == 0 else {
      let failure = DiskError("fstat", path)
      close(file)
      throw failure
    }
    guard status.st_mode & S_IFMT == S_IFREG else {
      close(file)
      return nil
    }
    size = Int(status.st_size)
    stamp = FileStamp(status)
  }

  deinit { close(descriptor) }
}

extension Directory {
  /// Returns the stamp of an entry; nil if there is none.
  package func stamp(of name: String) -> FileStamp? { status(of: name).map(FileStamp.init) }

  /// Like `stamp(of:)`, but throws when the check itself fails.
  package func checkedStamp(of name: String) throws(DiskError) -> FileStamp? {
    var status = stat()
    if fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 { return FileStamp(status) }
    let failure = DiskError("stat", path + "/" + name)
    guard [ENOENT, ENOTDIR].contains(failure.code) else { throw failure }
    return nil
  }
}
