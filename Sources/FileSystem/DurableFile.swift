// Writes and moves files so that a power cut at any line leaves either the old state or the new one:
// write under a temporary name, fsync, close (checked), link or rename, fsync the directory.

import CLinux
import Glibc

package enum DurableFile {
  /// Writes a new file.
  ///
  /// - Parameter isDurable: whether the bytes reach the disk before this returns. The name does so with the directory's sync.
  package static func create(_ path: String, _ bytes: [UInt8], isDurable: Bool = true) throws(DiskError) {
    let file = try OutputFile(creating: path)
    do {
      try file.write(bytes, at: 0)
      if isDurable { try file.finish() }
    } catch {
      unlink(path)
      throw error
    }
  }

  /// Brings a file to the disk.
  package static func sync(_ path: String) throws(DiskError) {
    let file = try check("open", path) { open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) }
    defer { close(file) }
    try check("fsync", path) { fsync(file) }
  }

  /// Replaces a file atomically.
  package static func replace(_ path: String, _ bytes: [UInt8], temporary: String) throws(DiskError) {
    unlink(temporary)
    try create(temporary, bytes)
    do {
      try check("rename", path) { rename(temporary, path) }
    } catch {
      unlink(temporary)
      throw error
    }
  }

  /// Returns the bytes of a regular file; nil if there is none, or it is larger than `limit`.
  package static func contents(of path: String, limit: Int) throws(DiskError) -> [UInt8]? {
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard file >= 0 else {
      let failure = DiskError("open", path)
      // The workers make no links and no sockets.
      guard [ENOENT, ELOOP, ENXIO].contains(failure.code) else { throw failure }
      return nil
    }
    defer { close(file) }
    guard case .bytes(let bytes) = try readRegularFile(file, path: path, limit: limit) else { return nil }
    return bytes
  }

  /// Gives `source` a second name, unless the name is taken.
  ///
  /// - Returns: whether the name was free.
  package static func link(_ source: String, to target: String) throws(DiskError) -> Bool {
    if Glibc.link(source, target) == 0 { return true }
    if errno == EEXIST { return false }
    throw DiskError("link", target)
  }

  /// Moves a file or directory to a name that nothing has.
  ///
  /// - Returns: whether the name was free.
  package static func move(_ source: String, to target: String) throws(DiskError) -> Bool {
    if clinux_rename_noreplace(source, target) == 0 { return true }
    switch errno {
    case EEXIST: return false
    case EINVAL, ENOSYS, EPERM: break  // NFS; a kernel or container without renameat2
    default: throw DiskError("rename", target)
    }
    if try isDirectory(source) {
      // rename(2) replaces nothing but an empty directory.
      if rename(source, target) == 0 { return true }
      if errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR { return false }
      throw DiskError("rename", target)
    }
    guard try link(source, to: target) else { return false }
    try check("unlink", source) { unlink(source) }
    return true
  }

  /// Tries NAME, NAME.2, NAME.3 … until `put` returns true.
  ///
  /// - Returns: the name that `put` took.
  package static func firstFree(
    in directory: String, _ name: String, _ put: (String) throws(DiskError) -> Bool
  ) throws(DiskError) -> String {
    var candidate = name
    var number = 1
    while try !put(directory + "/" + candidate) {
      number += 1
      candidate = "\(name).\(number)"
    }
    return candidate
  }

  /// Makes a directory and its missing parents; they survive a power cut.
  package static func makeDirectories(_ path: String) throws(DiskError) {
    if isReachableDirectory(path) { return }
    let parent = parentDirectory(of: path)
    if parent != path { try makeDirectories(parent) }
    if mkdir(path, 0o755) != 0 {
      let failure = DiskError("mkdir", path)
      guard failure.code == EEXIST else { throw failure }
      guard isReachableDirectory(path) else { throw DiskError("mkdir", path, code: ENOTDIR) }
    }
    try Directory(opening: parent).sync()
  }

  /// Removes a file, or a directory with its contents. Links are removed, not followed.
  package static func removeTree(_ path: String) throws(DiskError) {
    if unlink(path) == 0 || errno == ENOENT { return }
    guard errno == EISDIR || errno == EPERM else { throw DiskError("unlink", path) }
    chmod(path, 0o700)
    do throws(DiskError) {
      try Directory(opening: path, followingLinks: false).removeContents()
    } catch  where error.code == ENOENT {
      // Another process removes it, too.
    }
    try check("rmdir", path) { rmdir(path) == 0 || errno == ENOENT ? 0 : -1 }
  }

  /// Returns the free bytes of a path's file system, for a user without privileges.
  package static func freeBytes(at path: String) throws(DiskError) -> Int {
    var status = statvfs()
    try check("statvfs", path) { statvfs(path, &status) }
    // Some NFS servers report negative or absurdly high numbers.
    let (bytes, isTooMuch) = Int(clamping: status.f_bavail).multipliedReportingOverflow(by: Int(status.f_frsize))
    return isTooMuch ? .max : bytes
  }

  /// Whether lstat(2) finds the path. Any failure counts as missing.
  package static func exists(_ path: String) -> Bool { (try? mode(of: path)) != nil }

  /// Like `exists`, but throws when the check itself fails.
  package static func isThere(_ path: String) throws(DiskError) -> Bool { try mode(of: path) != nil }

  /// Returns the size of a file, in bytes.
  package static func size(of path: String) throws(DiskError) -> Int {
    var status = stat()
    try check("stat", path) { lstat(path, &status) }
    return Int(status.st_size)
  }

  /// Whether it is a regular file, not a link to one.
  package static func isFile(_ path: String) -> Bool { (try? mode(of: path)).map { $0 & S_IFMT } == S_IFREG }

  /// Whether it is a directory, not a link to one. Throws when the check itself fails: a session taken for missing
  /// would be published over.
  package static func isDirectory(_ path: String) throws(DiskError) -> Bool {
    try mode(of: path).map { $0 & S_IFMT } == S_IFDIR
  }

  /// Returns the mode of a path, of a link itself; nil if there is nothing.
  private static func mode(of path: String) throws(DiskError) -> mode_t? {
    var status = stat()
    if lstat(path, &status) == 0 { return status.st_mode }
    let failure = DiskError("stat", path)
    guard [ENOENT, ENOTDIR].contains(failure.code) else { throw failure }
    return nil
  }

  /// Whether `path` is a directory, or a link to one.
  package static func isReachableDirectory(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  /// Returns the path without links, `.` and `..`; unchanged if it names nothing.
  package static func resolved(_ path: String) -> String {
    guard let resolved = realpath(path, nil) else { return path }
    defer { free(resolved) }
    return String(cString: resolved)
  }

  package static func parentDirectory(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }
}

/// Returns the last component of a path.
package func lastComponent(of path: String) -> String {
  let bytes = path.utf8
  guard let slash = bytes.lastIndex(of: UInt8(ascii: "/")) else { return path }
  let start = bytes.index(after: slash)
  if start < bytes.endIndex { return String(path[start...]) }
  // Slashes at the end do not count.
  return path.split(separator: "/").last.map(String.init) ?? path
}
