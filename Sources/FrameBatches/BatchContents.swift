// The contents of a batch before a format is known: names, and the bytes behind them. A directory and an archive
// look the same from here on.

import FileSystem
import Glibc
import JSON

/// The files of a batch, by name.
package protocol BatchContents: Sendable {
  /// The paths of the regular files, in the order of the container.
  var names: [String] { get }
  /// The names at the top level of a directory. For an archive, all names: archives may have all files in folders.
  var topNames: [String] { get }
  /// Whether the files are loose in a file system, so that any number of them costs no memory.
  var isLoose: Bool { get }
  /// The whole content if it is a stream of records in memory; nil for a container of files.
  var stream: [UInt8]? { get }
  /// The whole content if it is JSON or lines of JSON; else nil.
  var text: StreamContents? { get }
  /// Returns the time when a file was last modified, in unix milliseconds; nil for containers that do not store it exactly.
  func modifiedMs(_ name: String) throws -> Int64?
  /// Entries of the container that are not regular files with valid names.
  var refused: [RefusedFrame] { get }
  /// Returns the file's bytes, or the reason why it cannot be read; nil if there is no such file.
  func contents(of name: String, limit: Int) throws -> FileContents?
  /// Returns the first bytes of a file, at most `count`; nil if it cannot be read.
  func start(of name: String, count: Int) throws -> [UInt8]?
  /// Returns a file in the container, or in the same directory as the container. Some recorders describe a batch there.
  func sideFile(_ name: String, limit: Int) throws -> FileContents?
}

extension BatchContents {
  package var topNames: [String] { names }
  package var isLoose: Bool { false }
  package var stream: [UInt8]? { nil }
  package var text: StreamContents? { nil }

  package func modifiedMs(_ name: String) throws -> Int64? { nil }

  package func start(of name: String, count: Int) throws -> [UInt8]? {
    // An archive is in memory.
    guard case .bytes(let bytes)? = try contents(of: name, limit: 1 << 40) else { return nil }
    return Array(bytes.prefix(count))
  }

  package func sideFile(_ name: String, limit: Int) throws -> FileContents? { try contents(of: name, limit: limit) }
}

/// A stream of records, or a text, as a batch: in memory, or in a file that is read in parts.
package struct StreamContents: BatchContents {
  package enum Storage: Sendable {
    case memory([UInt8])
    case file(TextDocument)
  }

  private let storage: Storage

  package init(_ storage: Storage) { self.storage = storage }

  package var names: [String] { [] }
  package var refused: [RefusedFrame] { [] }

  package var stream: [UInt8]? { if case .memory(let bytes) = storage { bytes } else { nil } }

  package var text: StreamContents? {
    switch storage {
    case .memory(let bytes): TextDocument.isJSON(bytes.prefix(64)) ? self : nil
    case .file: self
    }
  }

  /// The size of the stream in bytes.
  package var count: Int {
    switch storage {
    case .memory(let bytes): bytes.count
    case .file(let text): text.count
    }
  }

  /// Reads a part of the stream; fewer bytes where a file has become shorter.
  package func bytes(_ range: Range<Int>) throws(DiskError) -> [UInt8] {
    switch storage {
    case .memory(let bytes): Array(bytes[range])
    case .file(let text): try text.bytes(range)
    }
  }

  /// Returns the name of a record: its offset and size.
  package static func name(of record: Range<Int>) -> String { "\(record.lowerBound)+\(record.count)" }

  /// Returns the name of an image in a text: the offset and size of its base64 string, quotes included.
  package static func name(ofText literal: Range<Int>) -> String { "text " + name(of: literal) }

  package func contents(of name: String, limit: Int) throws -> FileContents? {
    let isText = name.hasPrefix("text ")
    let parts = name.dropFirst(isText ? 5 : 0).split(separator: "+").compactMap { Int($0) }
    guard parts.count == 2, parts[0] >= 0, parts[1] >= 0, parts[1] <= count - parts[0] else { return nil }
    // Base64 has four characters for three bytes; beside them are line breaks, escapes and the media type.
    let most = isText ? limit / 2 * 3 + 1_024 : limit
    guard parts[1] <= most else { return .refused(FileRefusal(size: parts[1], limit: most)) }
    let bytes = try bytes(parts[0]..<parts[0] + parts[1])
    guard isText else { return .bytes(bytes) }
    guard let text = try? JSONParser.parse(bytes).string, let image = Base64.image(text) else {
      return .refused("not an image in base64")
    }
    return image.count <= limit ? .bytes(image) : .refused(FileRefusal(size: image.count, limit: limit))
  }
}

/// A directory as a batch: its regular files, and those in its folders; if these are no pictures, those in the folders of its folders, and
/// so on.
struct DirectoryContents: BatchContents {
  package let names: [String]
  package let topNames: [String]
  package let refused: [RefusedFrame]
  /// The first folder in a folder. Files in such folders are not read.
  let deeperFolder: String?
  private let directory: Directory
  /// Maximum number of folders above a file.
  private static let maximumDepth = 8

  package var isLoose: Bool { true }

  init(opening path: String, limits: Limits) throws {
    let root = try Directory(opening: path, followingLinks: false)
    directory = root
    var (names, refused, count) = ([String](), [RefusedFrame](), 0)
    let most = limits.folderEntries
    /// - Returns: the names of its folders.
    func list(_ directory: Directory, folder: String) throws -> [String] {
      var folders: [String] = []
      let entries = try directory.entries(limit: most - count)
      count += entries.count
      guard count <= most else {
        throw BadBatch(
          "read", lastComponent(of: path), "more than \(most) entries",
          advice: limits.splitsFolders ? Limits.adviceOnFolders : Limits.advice("entries", isLoose: true))
      }
      for entry in entries where !isRecorderJunk(entry.name) {
        let isText = entry.name.utf8.elementsEqual(entry.bytes)
        switch entry.kind {
        case .directory where isText: folders.append(entry.name)
        case .directory: break
        case .file where isText: names.append(folder + entry.name)
        case .file: refused.append(RefusedFrame(source: folder + entry.name, reason: "a name that is not UTF-8"))
        // Other entries in folders are no frames.
        case .other where folder.isEmpty: refused.append(RefusedFrame(source: entry.name, reason: "not a regular file"))
        case .other: break
        }
      }
      return folders
    }
    var folders = try list(root, folder: "")
    topNames = names
    // Most recorders put frames at most one level deep. Cameras have a folder for each hour and minute.
    var depth = 0
    func descend() throws {
      depth += 1
      var deeper: [String] = []
      for folder in folders {
        guard let inner = try? Directory(opening: folder, in: root) else { continue }
        deeper += try list(inner, folder: folder + "/").map { folder + "/" + $0 }
      }
      folders = deeper
    }
    while !folders.isEmpty && depth < Self.maximumDepth {
      if depth > 0, names.contains(where: NameAdvice.isPicture) { break }
      try descend()
    }
    let (read, unread) = (names.count, folders.first)
    do {
      while !folders.isEmpty && depth < Self.maximumDepth { try descend() }
    } catch is BadBatch {
      refused.append(RefusedFrame(source: unread ?? "", reason: "more entries than are counted"))
    }
    // These pictures are not read, but counted: they must not go with the batch in silence.
    refused += names[read...].filter(NameAdvice.isPicture).map {
      RefusedFrame(source: $0, reason: "in a folder of a folder", kind: .inFolder)
    }
    (self.names, self.refused, deeperFolder) = (Array(names.prefix(read)), refused, unread)
  }

  package func contents(of name: String, limit: Int) throws -> FileContents? {
    try reading(name) { try directory.contents(of: name, limit: limit) }
  }

  package func start(of name: String, count: Int) throws -> [UInt8]? {
    guard case .bytes(let bytes)? = try reading(name, { try directory.start(of: name, count: count) }) else {
      return nil
    }
    return bytes
  }

  private func reading(_ name: String, _ body: () throws -> FileContents?) throws -> FileContents? {
    do {
      return try body()
    } catch let failure as DiskError where failure.code == EACCES {
      // An unreadable frame may be a good one, so the batch fails as a whole.
      throw BadBatch(
        "read", name, BadBatch.denied, advice: "make the batch readable for the worker, and send it again")
    } catch let failure as DiskError where failure.code == EAGAIN {
      throw BadBatch("read", name, BadBatch.leased, advice: "send the batch again when no other process uses it")
    }
  }

  package func modifiedMs(_ name: String) throws -> Int64? {
    var status = stat()
    try check("stat", directory.path + "/" + name) {
      unsafe fstatat(directory.descriptor, name, &status, AT_SYMLINK_NOFOLLOW)
    }
    return WallClock.unixMs(status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
  }

  package func sideFile(_ name: String, limit: Int) throws -> FileContents? {
    if let inside = try contents(of: name, limit: limit) { return inside }
    let parent = try Directory(opening: DurableFile.parentDirectory(of: directory.path))
    return try parent.contents(of: name, limit: limit)
  }
}

/// Image files that the user lists one by one.
struct ListedContents: BatchContents {
  let names: [String]
  private let paths: [String: String]

  var isLoose: Bool { true }
  var refused: [RefusedFrame] { [] }

  /// - Throws: ``BadBatch`` for two files of one name.
  init(_ files: [String], limits: Limits) throws {
    var paths: [String: String] = [:]
    for file in files {
      guard paths.updateValue(file, forKey: lastComponent(of: file)) == nil else {
        throw BadBatch("read", file, "a second file of that name", advice: "encode the directories as two batches")
      }
    }
    guard files.count <= limits.folderEntries else {
      throw BadBatch(
        "read", files[0], "\(files.count) files, more than the limit of \(limits.folderEntries)",
        advice: limits.splitsFolders
          ? Limits.adviceOnFolders : Limits.advice("entries", files.count, most: 1_000_000, isLoose: true))
    }
    self.paths = paths
    names = paths.keys.sorted()
  }

  func modifiedMs(_ name: String) throws -> Int64? {
    guard let path = paths[name] else { return nil }
    var status = stat()
    try check("stat", path) { unsafe stat(path, &status) }
    return WallClock.unixMs(status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
  }

  func contents(of name: String, limit: Int) throws -> FileContents? {
    try read(name, limit: limit, count: .max)
  }

  func start(of name: String, count: Int) throws -> [UInt8]? {
    guard case .bytes(let bytes)? = try read(name, limit: .max, count: count) else { return nil }
    return bytes
  }

  private func read(_ name: String, limit: Int, count: Int) throws -> FileContents? {
    guard let path = paths[name] else { return nil }
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    if file < 0 && errno == EACCES {
      throw BadBatch("read", name, BadBatch.denied, advice: "make it readable for you")
    }
    guard file >= 0 else { throw DiskError("open", path) }
    defer { close(file) }
    return try readRegularFile(file, path: path, limit: limit, count: count)
  }
}

/// Whether a file is a leftover of a recorder or file manager, and no frame.
package func isRecorderJunk(_ name: String) -> Bool {
  let base = lastComponent(of: name)
  return base == ".DS_Store" || base.hasPrefix("._") || base.lowercased().hasSuffix(".mp4")
}
