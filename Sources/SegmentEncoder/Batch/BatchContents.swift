// What lies in a batch before anyone has understood it: names, and the bytes behind them. A directory and an archive
// look the same from here on.

import Glibc

/// The files of a batch, by name.
protocol BatchContents {
  /// The regular files, in the order of the container.
  var names: [String] { get }
  /// What the container holds that is not a plain file with a plain name.
  var refused: [RefusedFrame] { get }
  /// The file's bytes, or the reason there are none.
  func contents(of name: String, limit: Int) throws -> FileContents?
}

/// A directory as a batch: its regular files, not those of directories inside.
struct DirectoryContents: BatchContents {
  let names: [String]
  let refused: [RefusedFrame]
  private let directory: Directory

  init(opening path: String, limits: Limits) throws {
    directory = try Directory(opening: path, followingLinks: false)
    let entries = try directory.entries(limit: limits.entries)
    guard entries.count <= limits.entries else {
      throw BadBatch("read", lastComponent(of: path), "more than \(limits.entries) entries", advice: "split the batch")
    }
    var names: [String] = []
    var refused: [RefusedFrame] = []
    for entry in entries where !isRecorderJunk(entry.name) {
      switch entry.kind {
      case .directory: break
      case .other: refused.append(RefusedFrame(source: entry.name, reason: "not a regular file"))
      case .file where entry.name.utf8.elementsEqual(entry.bytes): names.append(entry.name)
      case .file: refused.append(RefusedFrame(source: entry.name, reason: "a name that is not UTF-8"))
      }
    }
    self.names = names
    self.refused = refused
  }

  func contents(of name: String, limit: Int) throws -> FileContents? {
    try directory.contents(of: name, limit: limit)
  }
}

/// Files that recorders and file managers leave behind and that are no frames.
func isRecorderJunk(_ name: String) -> Bool {
  let base = lastComponent(of: name)
  return base == ".DS_Store" || base.hasPrefix("._") || base.lowercased().hasSuffix(".mp4")
}

func lastComponent(of path: String) -> String {
  path.split(separator: "/").last.map(String.init) ?? path
}
