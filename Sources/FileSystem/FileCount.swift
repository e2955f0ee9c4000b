import Glibc

/// The number of files in a tree, and their size.
package struct FileCount: Sendable, Equatable {
  package private(set) var files = 0
  package private(set) var bytes = 0

  package init() {}

  /// Counts a file, or all files in a directory. Unreadable files and links count nothing; no link is followed.
  package init(of path: String) {
    if let directory = try? Directory(opening: path, followingLinks: false) {
      add(directory, depth: 64)
    } else if DurableFile.isFile(path), let size = try? DurableFile.size(of: path) {
      add(fileOf: size)
    }
  }

  /// - Parameter size: in bytes.
  package mutating func add(fileOf size: Int) {
    files += 1
    bytes += size
  }

  package static func += (sum: inout FileCount, other: FileCount) {
    sum.files += other.files
    sum.bytes += other.bytes
  }

  /// - Parameter depth: the levels that count; no producer nests deeper.
  private mutating func add(_ directory: Directory, depth: Int) {
    for entry in (try? directory.entries()) ?? [] {
      switch entry.kind {
      case .file: if let status = directory.state(of: entry) { add(fileOf: Int(status.st_size)) }
      case .directory where depth > 0:
        if let inner = try? Directory(entry, in: directory) { add(inner, depth: depth - 1) }
      default: break
      }
    }
  }
}
