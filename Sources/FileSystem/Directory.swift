// An open directory. Its entries are reached relative to its descriptor, by one path component or a path that stays
// beneath it, and through a symbolic link only where a caller asks for it. Only regular files are read.

import CLinux
import Glibc

/// An open directory, closed when the last reference goes.
package final class Directory: Sendable {
  package let path: String
  package let descriptor: Int32

  /// - Parameter followingLinks: `false` for a path in which another user may have put a link.
  package convenience init(opening path: String, followingLinks: Bool = true) throws(DiskError) {
    let links = followingLinks ? 0 : O_NOFOLLOW
    self.init(try check("open", path) { open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | links) }, path: path)
  }

  /// Opens a directory in another one. A link fails.
  package convenience init(opening name: String, in parent: Directory) throws(DiskError) {
    try self.init(Entry(name: name, kind: .directory, bytes: Array(name.utf8)), in: parent)
  }

  /// Opens an entry of another directory. A link fails.
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
    package enum Kind: Sendable { case file, directory, link, other }

    package let name: String
    package let kind: Kind
    /// The name as the kernel has it, without the terminating zero.
    package let bytes: [UInt8]

    /// The name for a system call.
    fileprivate var terminated: [CChar] { bytes.map { CChar(bitPattern: $0) } + [0] }
  }

  /// Returns the status of an entry, of a link itself; nil if it is gone.
  package func state(of entry: Entry) -> stat? { status(of: entry.terminated) }

  func status(of name: UnsafePointer<CChar>) -> stat? {
    var status = stat()
    return fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? status : nil
  }

  /// Returns all entries but `.` and `..`, in the order of their names' bytes.
  ///
  /// - Parameter limit: the maximum number of entries. One more is returned if there are more.
  package func entries(limit: Int = .max - 1) throws(DiskError) -> [Entry] {
    var result: [Entry] = []
    try scan { name, type in
      let bytes = Array(UnsafeRawBufferPointer(start: name, count: strlen(name)))
      result.append(Entry(name: printableName(bytes), kind: kind(of: name, hint: type), bytes: bytes))
      return result.count <= limit
    }
    return result.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
  }

  /// Returns the entries of a directory; none if there is no directory, or only a link to one.
  package static func entries(ifAt path: String) throws(DiskError) -> [Entry] {
    do throws(DiskError) {
      return try Directory(opening: path, followingLinks: false).entries()
    } catch {
      guard [ENOENT, ENOTDIR, ELOOP].contains(error.code) else { throw error }
      return []
    }
  }

  /// Calls `body` with the name of each entry but `.` and `..`, in no order.
  package func visit(_ body: (UnsafePointer<CChar>) -> Void) throws(DiskError) {
    try scan { name, _ in
      body(name)
      return true
    }
  }

  /// Returns the names of its directories, in no order. Names that are not UTF-8 are left out.
  package func directoryNames() throws(DiskError) -> [String] {
    var names: [String] = []
    try scan { name, type in
      if kind(of: name, hint: type) == .directory, let text = String(validatingCString: name) { names.append(text) }
      return true
    }
    return names
  }

  /// - Parameter body: gets a name and the `d_type` of readdir(3); returns false to end the scan.
  private func scan(_ body: (UnsafePointer<CChar>, UInt8) -> Bool) throws(DiskError) {
    let copy = try check("open", path) { openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
    guard let stream = fdopendir(copy) else {
      let failure = DiskError("opendir", path)
      close(copy)
      throw failure
    }
    defer { closedir(stream) }
    while true {
      errno = 0
      guard let found = readdir(stream) else {
        if errno != 0 { throw DiskError("readdir", path) }
        return
      }
      let shouldContinue = withUnsafeBytes(of: &found.pointee.d_name) { raw in
        guard let name = raw.bindMemory(to: CChar.self).baseAddress else { return true }
        return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || body(name, found.pointee.d_type)
      }
      if !shouldContinue { return }
    }
  }

  /// Reads a regular file beneath this directory.
  ///
  /// - Returns: the file's bytes, or why they are not read; nil if there is no such file.
  package func contents(of name: String, limit: Int) throws -> FileContents? {
    try read(name) { file throws(DiskError) in try readRegularFile(file, path: path + "/" + name, limit: limit) }
  }

  /// Like ``contents(of:limit:)``, with the stamp that the file had before it was read.
  package func stampedContents(of name: String, limit: Int) throws -> (contents: FileContents?, stamp: FileStamp?) {
    var stamp: FileStamp?
    let contents = try read(name) { file throws(DiskError) in
      var status = stat()
      if fstat(file, &status) == 0 { stamp = FileStamp(status) }
      return try readRegularFile(file, path: path + "/" + name, limit: limit)
    }
    return (contents, stamp)
  }

  /// Reads the first bytes of a regular file beneath this directory.
  ///
  /// - Returns: at most `count` bytes, or why they are not read; nil if there is no such file.
  package func start(of name: String, count: Int) throws -> FileContents? {
    try read(name) { file throws(DiskError) in
      try readRegularFile(file, path: path + "/" + name, limit: .max, count: count)
    }
  }

  private func read(
    _ name: String, _ body: (Int32) throws(DiskError) -> FileContents
  ) throws(DiskError) -> FileContents? {
    guard !name.utf8.contains(0) else { return .refused("no name that a file can have") }
    // O_NONBLOCK: opening a FIFO would wait for a writer.
    var file = clinux_open_beneath(descriptor, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)
    if file < 0 && (errno == ENOSYS || errno == EPERM) && !name.contains("/") && name != ".." {
      file = openat(descriptor, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)
    }
    if file < 0 {
      switch errno {
      case ENOENT, ENOTDIR: return nil
      case ELOOP: return .refused("\(FileRefusal.link)")
      case EXDEV: return .refused("a path that leaves the batch")
      case ENXIO: return .refused("not a regular file")
      case ENAMETOOLONG: return .refused("a name that is too long")
      default: throw DiskError("open", path + "/" + name)
      }
    }
    defer { close(file) }
    return try body(file)
  }

  /// Removes all entries. Links are removed, not followed. Directories nested deeper than `depth` are first moved up to
  /// `top`: this bounds the number of open descriptors and the length of paths.
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
      // The owner may have made it read-only.
      fchmodat(descriptor, name, 0o700, 0)
      do throws(DiskError) {
        try Directory(entry, in: self).removeContents(depth: depth - 1, top: top)
      } catch  where error.code == ENOENT {
        // Another process removes it, too.
      }
      try check("rmdir", place) { unlinkat(descriptor, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -1 }
    }
    // The directories that were moved up to here.
    if top === self, try !self.entries().isEmpty { try removeContents() }
  }

  /// Makes new, linked and renamed entries survive a power cut.
  package func sync() throws(DiskError) {
    try check("fsync", path) { fsync(descriptor) }
  }

  /// Makes all changes of the directory's file system survive a power cut: for many files that costs less than a call for each. It
  /// waits for what other programs have written, too.
  ///
  /// - Returns: false, and nothing is done, if a failed write might not be reported.
  package func syncFileSystem() throws(DiskError) -> Bool {
    guard clinux_syncs_all_files(descriptor) == 1 else { return false }
    try check("syncfs", path) { syncfs(descriptor) }
    return true
  }

  /// Syncs many directories, with one call for those of a file system where that is possible.
  package static func sync(_ directories: some Collection<Directory>) throws(DiskError) {
    var synced: Set<dev_t> = []
    for directory in directories {
      var status = stat()
      try check("fstat", directory.path) { fstat(directory.descriptor, &status) }
      if synced.contains(status.st_dev) { continue }
      if directories.count > Self.few, try directory.syncFileSystem() {
        synced.insert(status.st_dev)
      } else {
        try directory.sync()
      }
    }
  }

  /// Directories, or sessions, up to which each is synced by a call of its own.
  package static let few = 8

  /// Locks the directory against other processes of this host until it is closed, if the file system has such locks.
  ///
  /// - Returns: false if another process holds the lock.
  package func lock() throws(DiskError) -> Bool {
    if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return true }
    if errno == EWOULDBLOCK { return false }
    let failure = DiskError("flock", path)
    guard failure.saysNoLocks else { throw failure }
    return true
  }

  private func kind(of name: UnsafePointer<CChar>, hint: UInt8) -> Entry.Kind {
    let type = hint == UInt8(DT_UNKNOWN) ? status(of: name)?.st_mode : UInt32(hint) << 12
    switch type.map({ $0 & S_IFMT }) {
    case S_IFREG: return .file
    case S_IFDIR: return .directory
    case S_IFLNK: return .link
    default: return .other
    }
  }
}

extension String {
  /// Returns the text, cut to a number of UTF-8 bytes. A hash of the whole text ends a cut one.
  package func shortened(to limit: Int) -> String {
    guard utf8.count > limit else { return self }
    let hash = utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }  // FNV-1a
    let mark = "~" + String(hash, radix: 36)
    var kept = utf8.prefix(limit - mark.utf8.count)
    while String(kept) == nil { kept = kept.dropLast() }
    return (String(kept) ?? "") + mark
  }
}

/// Returns a name for messages and for our own files. In a name that is not UTF-8, `%XX` replaces each byte that is not
/// printable ASCII, and each `%`.
package func printableName(_ bytes: [UInt8]) -> String {
  if let name = String(validating: bytes, as: UTF8.self) { return name }
  return bytes.map { byte in
    byte >= 0x20 && byte < 0x7F && byte != UInt8(ascii: "%")
      ? String(UnicodeScalar(byte)) : "%" + SHA256.hexadecimal([byte]).uppercased()
  }.joined()
}
