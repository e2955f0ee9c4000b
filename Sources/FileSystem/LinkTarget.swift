// Symbolic links in a directory that lead to a file beneath it. The kernel finds the file, and says where the found file lies: no link
// that another process changes meanwhile leads elsewhere.

import CLinux
import Glibc

/// The file that a symbolic link leads to, or the lack of one.
package enum LinkTarget: Sendable, Equatable {
  /// A regular file beneath the directory. The path is relative to it; nil if it is not UTF-8.
  case file(path: String?)
  /// A regular file elsewhere.
  case fileOutside
  /// A directory elsewhere.
  case directoryOutside(path: String)
  /// A directory beneath this one, or this one.
  case directory
  /// Nothing, or nothing that this process may reach.
  case nothing
  case circle
  /// A device, a FIFO or a socket.
  case other
}

extension Directory {
  /// Returns what a symbolic link beneath this directory leads to.
  package func target(ofLink name: String) throws(DiskError) -> LinkTarget {
    guard !name.utf8.contains(0) else { return .nothing }
    // Opening a device could change its state.
    let file = clinux_find(descriptor, name)
    guard file >= 0 else {
      switch errno {
      case ENOENT, ENOTDIR, EACCES: return .nothing
      case ELOOP: return .circle
      default: throw DiskError("open", path + "/" + name)
      }
    }
    defer { close(file) }
    return try target(file, name)
  }

  private func target(_ file: Int32, _ name: String) throws(DiskError) -> LinkTarget {
    var status = stat()
    try check("fstat", path + "/" + name) { fstat(file, &status) }
    let place = Self.place(of: file)
    let own = Self.place(of: descriptor).map { $0 == [UInt8(ascii: "/")] ? $0 : $0 + [UInt8(ascii: "/")] }
    let isInside = if let place, let own { (place + [UInt8(ascii: "/")]).starts(with: own) } else { false }
    switch status.st_mode & S_IFMT {
    case S_IFREG:
      guard isInside, let place, let own else { return .fileOutside }
      return .file(path: String(validating: place.dropFirst(own.count), as: UTF8.self))
    case S_IFDIR: return isInside ? .directory : .directoryOutside(path: printableName(place ?? []))
    default: return .other
    }
  }

  /// Reads the file that a symbolic link leads to, or its first `count` bytes.
  ///
  /// - Returns: the bytes, or why they are not read: the file has to be a regular one beneath this directory.
  package func contents(ofLink name: String, limit: Int, count: Int = .max) throws(DiskError) -> FileContents? {
    let found = clinux_find(descriptor, name)
    guard found >= 0 else {
      if [ENOENT, ENOTDIR].contains(errno) { return nil }
      if errno == ELOOP { return .refused("a symbolic link in a circle") }
      throw DiskError("open", path + "/" + name)
    }
    defer { close(found) }
    guard case .file = try target(found, name) else { return .refused("a symbolic link") }
    let file = try check("open", path + "/" + name) {
      open("/proc/self/fd/\(found)", O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    }
    defer { close(file) }
    return try readRegularFile(file, path: path + "/" + name, limit: limit, count: count)
  }

  /// Returns the path of an open file; nil without `/proc`, and for one that this process cannot reach by a path.
  private static func place(of file: Int32) -> [UInt8]? {
    var path = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink("/proc/self/fd/\(file)", &path, path.count)
    guard (1..<path.count).contains(count), path[0] == CChar(UInt8(ascii: "/")) else { return nil }
    return path[..<count].map(UInt8.init(bitPattern:))
  }
}
