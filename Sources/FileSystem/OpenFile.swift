import CLinux
import Glibc

/// A stamp that tells whether a file is the one that was read before.
package struct FileStamp: Sendable, Equatable {
  package let inode: UInt64
  package let size: Int64
  /// Since 1970, in nanoseconds.
  package let modified: Int64

  package init(_ status: stat) {
    inode = UInt64(status.st_ino)
    size = Int64(status.st_size)
    modified = Int64(status.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(status.st_mtim.tv_nsec)
  }
}

/// A plain file, open for reading, closed when the last reference goes.
package final class OpenFile: Sendable {
  package let descriptor: Int32
  /// In bytes.
  package let size: Int
  /// Another text when the file is another.
  package let tag: String

  /// - Returns: nil where there is none of this name, or something else; links are not followed.
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

  /// - Parameter file: closed when this goes, and when it is no plain file.
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
    let stamp = FileStamp(status)
    tag = [stamp.inode, UInt64(stamp.size), UInt64(bitPattern: stamp.modified)]
      .map { String($0, radix: 36) }.joined(separator: "-")
  }

  deinit { close(descriptor) }
}

extension Directory {
  /// The stamp of an entry in this directory; nil if there is none.
  package func stamp(of name: String) -> FileStamp? {
    var status = stat()
    return fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? FileStamp(status) : nil
  }
}
