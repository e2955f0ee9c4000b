// An open directory. Everything inside is reached relative to its descriptor, one path component or a path that
// stays beneath it, and never through a symbolic link; nothing that is not a regular file is ever read.

import CLinux
import Glibc

/// An open directory, closed when the last reference goes.
package final class Directory: Sendable {
  package let path: String
  package let descriptor: Int32

  /// - Parameter followingLinks: `false` for anything a stranger may have made.
  package convenience init(opening path: String, followingLinks: Bool = true) throws(DiskError) {
    let links = followingLinks ? 0 : O_NOFOLLOW
    self.init(try check("open", path) { open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | links) }, path: path)
  }

  /// A directory in another one, never reached through a link.
  package convenience init(opening name: String, in parent: Directory) throws(DiskError) {
    let path = parent.path + "/" + name
    let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW
    self.init(try check("open", path) { openat(parent.descriptor, name, flags) }, path: path)
  }

  /// One of the entries of another one.
  package convenience init(_ entry: Entry, in parent: Directory) throws(DiskError) {
    let path = parent.path + "/" + entry.name
    let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW
    self.init(try check("open", path) { openat(parent.descriptor, entry.terminated, flags) }, path: path)
  }

  private init(_ descriptor: Int32, path: String) {
    self.descriptor = descriptor
    self.path = path
  }

  deinit { close(descriptor) }

  /// One entry of a directory. A name that is not UTF-8 keeps its bytes and shows as `%XX`.
  package struct Entry: Sendable {
    package enum Kind: Sendable { case file, directory, other }

    package let name: String
    package let kind: Kind
    /// The name as the system has it, without the terminating zero.
    package let bytes: [UInt8]

    /// The name for a call of the system.
    fileprivate var terminated: [CChar] { bytes.map { CChar(bitPattern: $0) } + [0] }
  }

  /// The status of an entry (of a link: its own); nil when it is gone.
  package func state(of entry: Entry) -> stat? {
    var status = stat()
    return fstatat(descriptor, entry.terminated, &status, AT_SYMLINK_NOFOLLOW) == 0 ? status : nil
  }

  /// All entries but `.` and `..`, in the order of their names' bytes.
  ///
  /// - Parameter limit: the most to read; one more is read to tell that there are more.
  package func entries(limit: Int = .max - 1) throws(DiskError) -> [Entry] {
    let stream = try stream()
    defer { closedir(stream) }
    var result: [Entry] = []
    while result.count <= limit, let found = try next(stream) {
      let bytes = withUnsafeBytes(of: &found.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
      if bytes == [UInt8(ascii: ".")] || bytes == Array("..".utf8) { continue }
      result.append(
        Entry(name: printableName(bytes), kind: kind(of: bytes, hint: found.pointee.d_type), bytes: bytes))
    }
    return result.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
  }

  /// Shows the names of all entries but `.` and `..`, in whatever order.
  package func visit(_ body: (UnsafePointer<CChar>) -> Void) throws(DiskError) {
    let stream = try stream()
    defer { closedir(stream) }
    while let found = try next(stream) {
      withUnsafeBytes(of: &found.pointee.d_name) { raw in
        guard let name = raw.bindMemory(to: CChar.self).baseAddress else { return }
        if strcmp(name, ".") != 0 && strcmp(name, "..") != 0 { body(name) }
      }
    }
  }

  private func stream() throws(DiskError) -> OpaquePointer {
    let copy = try check("open", path) { openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
    if let stream = fdopendir(copy) { return stream }
    let failure = DiskError("opendir", path)
    close(copy)
    throw failure
  }

  private func next(_ stream: OpaquePointer) throws(DiskError) -> UnsafeMutablePointer<dirent>? {
    errno = 0
    if let found = readdir(stream) { return found }
    if errno != 0 { throw DiskError("readdir", path) }
    return nil
  }

  /// The whole of a regular file beneath this directory, or why it is not one.
  ///
  /// - Returns: nil when there is no such file.
  package func contents(of name: String, limit: Int) throws -> FileContents? {
    guard !name.utf8.contains(0) else { return .refused("no name that a file can have") }
    // O_NONBLOCK: opening a FIFO would wait for a writer.
    var file = clinux_open_beneath(descriptor, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)
    if file < 0 && (errno == ENOSYS || errno == EPERM) && !name.contains("/") && name != ".." {
      file = openat(descriptor, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)
    }
    if file < 0 {
      switch errno {
      case ENOENT, ENOTDIR: return nil
      case ELOOP: return .refused("a symbolic link")
      case EXDEV: return .refused("a path that leaves the batch")
      case ENXIO: return .refused("not a regular file")
      case ENAMETOOLONG: return .refused("a name that is too long")
      default: throw DiskError("open", path + "/" + name)
      }
    }
    defer { close(file) }
    return try readRegularFile(file, path: path + "/" + name, limit: limit)
  }

  /// Removes all that is in here; links are removed, never followed. Directories nested deeper than `depth` are first
  /// moved up to `top`, so that neither paths nor descriptors grow without bound.
  func removeContents(depth: Int = 32, top: Directory? = nil) throws(DiskError) {
    let top = top ?? self
    var entries = try self.entries()
    while let entry = entries.popLast() {
      let name = entry.terminated
      let place = path + "/" + entry.name
      if unlinkat(descriptor, name, 0) == 0 || errno == ENOENT { continue }
      guard errno == EISDIR || errno == EPERM else { throw DiskError("unlink", place) }
      if depth == 0 {
        let parked = "deep~\(UInt64.random(in: 0 ... .max))"
        try check("rename", place) { renameat(descriptor, name, top.descriptor, parked) }
        continue
      }
      // Its owner may have made it read-only; where we may, we undo that.
      fchmodat(descriptor, name, 0o700, 0)
      do throws(DiskError) {
        try Directory(entry, in: self).removeContents(depth: depth - 1, top: top)
      } catch  where error.code == ENOENT {
        // Somebody else removes it, too.
      }
      try check("rmdir", place) { unlinkat(descriptor, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -1 }
    }
    // The entries that were parked here meanwhile.
    if top === self, try !self.entries().isEmpty { try removeContents() }
  }

  /// Makes what was created, linked or renamed in here survive a power cut.
  package func sync() throws(DiskError) {
    try check("fsync", path) { fsync(descriptor) }
  }

  /// Tells other processes of this host that it is in use, for as long as it is open; where the file system knows such locks.
  ///
  /// - Returns: whether no other process does so.
  package func lock() throws(DiskError) -> Bool {
    if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return true }
    if errno == EWOULDBLOCK { return false }
    let failure = DiskError("flock", path)
    guard failure.saysNoLocks else { throw failure }
    return true
  }

  private func kind(of bytes: [UInt8], hint: UInt8) -> Entry.Kind {
    var type = UInt32(hint) << 12
    if hint == UInt8(DT_UNKNOWN) {
      var status = stat()
      let name = bytes.map { CChar(bitPattern: $0) } + [0]
      guard fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return .other }
      type = status.st_mode
    }
    switch type & S_IFMT {
    case S_IFREG: return .file
    case S_IFDIR: return .directory
    default: return .other
    }
  }
}

package enum FileContents {
  case bytes([UInt8])
  /// The reason why it is not a regular file of reasonable size.
  case refused(String)
}

/// Reads an open descriptor to its end when it is a regular file of at most `limit` bytes.
package func readRegularFile(_ file: Int32, path: String, limit: Int) throws(DiskError) -> FileContents {
  var status = stat()
  try check("fstat", path) { fstat(file, &status) }
  guard status.st_mode & S_IFMT == S_IFREG else { return .refused("not a regular file") }
  guard status.st_size <= limit else { return .refused("\(status.st_size) bytes, more than the limit of \(limit)") }
  var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
  var filled = 0
  while filled < bytes.count {
    let count = bytes.withUnsafeMutableBytes { buffer in
      read(file, buffer.baseAddress! + filled, buffer.count - filled)
    }
    if count < 0 {
      if errno == EINTR { continue }
      throw DiskError("read", path)
    }
    if count == 0 { break }
    filled += count
  }
  bytes.removeLast(bytes.count - filled)
  return .bytes(bytes)
}

extension String {
  /// As much of it as fits, with a mark of its own where something is missing.
  package func shortened(to limit: Int) -> String {
    guard utf8.count > limit else { return self }
    let hash = utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }  // FNV-1a
    let mark = "~" + String(hash, radix: 36)
    var kept = utf8.prefix(limit - mark.utf8.count)
    while String(kept) == nil { kept = kept.dropLast() }
    return (String(kept) ?? "") + mark
  }
}

/// A name for people and for our own files: bytes that are not UTF-8 become `%XX`, and then `%` itself too.
package func printableName(_ bytes: [UInt8]) -> String {
  if let name = String(validating: bytes, as: UTF8.self) { return name }
  let digits = Array("0123456789ABCDEF")
  return bytes.map { byte in
    byte >= 0x20 && byte < 0x7F && byte != UInt8(ascii: "%")
      ? String(UnicodeScalar(byte)) : "%\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
  }.joined()
}
