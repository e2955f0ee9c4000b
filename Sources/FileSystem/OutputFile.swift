import CLinux
import Glibc

/// A file being written, closed when the last reference goes.
package final class OutputFile {
  private let path: String
  private var descriptor: Int32

  package init(creating path: String) throws(DiskError) {
    self.path = path
    descriptor = try check("create", path) { open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644) }
  }

  /// Truncates a file that a killed process left. Throws if another process writes it.
  package init(restarting path: String) throws(DiskError) {
    self.path = path
    descriptor = try check("create", path) { open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o644) }
    try check("lock", path) { flock(descriptor, LOCK_EX | LOCK_NB) }
    try check("truncate", path) { ftruncate(descriptor, 0) }
  }

  /// Makes a file without a name, which the kernel removes when the last process closes it.
  package init(unnamedIn directory: String) throws(DiskError) {
    path = directory
    descriptor = try UnnamedFile.open(in: directory)
  }

  /// Gives a file without a name this name: it is whole, and on the disk. Another file of the name is replaced. Nothing more can be
  /// written.
  package func publish(as target: String) throws(DiskError) {
    try check("fsync", target) { fsync(descriptor) }
    let own = "/proc/self/fd/\(descriptor)"
    let temporary = "\(target).part"
    func link(to name: String) -> Bool { linkat(AT_FDCWD, own, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0 }
    if !link(to: target) {
      if errno == EEXIST {
        unlink(temporary)
        guard link(to: temporary) else { throw DiskError("link", temporary) }
      } else {
        try copy(to: temporary)
      }
      do {
        try check("rename", target) { rename(temporary, target) }
      } catch {
        unlink(temporary)
        throw error
      }
    }
    try Directory(opening: DurableFile.parentDirectory(of: target)).sync()
  }

  /// Copies a file that its file system cannot name.
  private func copy(to name: String) throws(DiskError) {
    var status = stat()
    try check("stat", path) { fstat(descriptor, &status) }
    let copy = try OutputFile(restarting: name)
    do {
      try copyBytes(0..<Int(status.st_size), to: copy, at: 0)
      try copy.finish()
    } catch {
      unlink(name)
      throw error
    }
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// Passes the descriptor to a reader. Nothing more can be written.
  package func forReading() throws(DiskError) -> OpenFile? {
    defer { descriptor = -1 }
    return try OpenFile(owning: descriptor, path: path)
  }

  /// Moves a range of bytes towards the start of the file, and truncates the file behind it.
  package func move(_ range: Range<Int>, to target: Int) throws(DiskError) {
    try copyBytes(range, to: self, at: target)
    try check("truncate", path) { ftruncate(descriptor, target + range.count) }
  }

  private func copyBytes(_ range: Range<Int>, to file: OutputFile, at target: Int) throws(DiskError) {
    var bytes = [UInt8](repeating: 0, count: min(1 << 20, range.count))
    var moved = 0
    while moved < range.count {
      let wanted = min(bytes.count, range.count - moved)
      let count = try check("read", path) {
        bytes.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, wanted, range.lowerBound + moved) }
      }
      // The file is locked, so no other process truncates it.
      guard count > 0 else { throw DiskError("read", path, code: EIO) }
      try file.write(Array(bytes[..<count]), at: target + moved)
      moved += count
    }
  }

  package func write(_ bytes: [UInt8], at offset: Int) throws(DiskError) {
    try writeWhole(bytes, to: descriptor, at: offset, path: path)
  }

  /// The bytes reach the disk before this returns; the file's name does so with its directory's sync.
  package func finish() throws(DiskError) {
    try check("fsync", path) { fsync(descriptor) }
    let closing = descriptor
    descriptor = -1
    // On NFS, close may be the only call that reports a failed write. It is not retried: close(2).
    if close(closing) != 0 && errno != EINTR { throw DiskError("close", path) }
  }
}
