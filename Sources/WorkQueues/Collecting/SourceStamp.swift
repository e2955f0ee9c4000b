import FileSystem
import Glibc

/// Tells whether a file of the watched folder is the one that was seen before.
package struct SourceStamp: Sendable, Equatable {
  let inode: UInt64
  let size: Int64
  /// In nanoseconds since 1970.
  let modified: Int64

  init(inode: UInt64, size: Int64, modified: Int64) {
    (self.inode, self.size, self.modified) = (inode, size, modified)
  }

  init(_ status: stat) {
    inode = UInt64(status.st_ino)
    size = Int64(status.st_size)
    modified = Int64(status.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(status.st_mtim.tv_nsec)
  }
}

extension Directory {
  /// Returns the stamp of an entry, of a link its own; nil if there is none.
  func sourceStamp(of name: String) -> SourceStamp? {
    var status = stat()
    return fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? SourceStamp(status) : nil
  }
}
