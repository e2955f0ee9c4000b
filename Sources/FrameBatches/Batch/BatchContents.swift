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
  /// The paths of the MP4s, which are no frames and not among ``names``.
  var recordings: [String] { get }
  /// MP4s that cannot be read.
  var refusedRecordings: [RefusedFrame] { get }
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
  /// The remedy if nothing but ``refused`` entries is there; nil if they have none in common.
  var adviceOnRefused: String? { get }
  /// Returns the file's bytes, or the reason why it cannot be read; nil if there is no such file.
  func contents(of name: String, limit: Int) throws -> FileContents?
  /// Returns the first bytes of a file, at most `count`; nil if it cannot be read.
  func start(of name: String, count: Int) throws -> [UInt8]?
  /// Returns the path of a file; nil in an archive.
  func path(of name: String) -> String?
  /// Returns a file in the container, or in the same directory as the container. Some recorders describe a batch there.
  func sideFile(_ name: String, limit: Int) throws -> FileContents?
}

extension BatchContents {
  package var topNames: [String] { names }
  package var recordings: [String] { [] }
  package var refusedRecordings: [RefusedFrame] { [] }
  package var isLoose: Bool { false }
  package var adviceOnRefused: String? { nil }
  package var stream: [UInt8]? { nil }
  package var text: StreamContents? { nil }

  package func modifiedMs(_ name: String) throws -> Int64? { nil }
  package func path(of name: String) -> String? { nil }

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

  func path(of name: String) -> String? { paths[name] }

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

/// Whether a file is an MP4: see ``BatchContents/recordings``.
package func isRecording(_ name: String) -> Bool {
  let base = lastComponent(of: name)
  return !base.hasPrefix("._") && base.lowercased().hasSuffix(".mp4")
}

extension BatchContents {
  /// Bytes of a file in which its header is: EXIF and profiles of up to 64 KiB each may precede the size.
  private var headerBytes: Int { 256 << 10 }
  /// Bytes of a TIFF of which the size is read; a larger one counts as unreadable.
  private var tiffBytes: Int { 16 << 20 }

  /// Returns the size of a picture by its header; nil for a file without a readable size.
  func pictureSize(of path: String) throws -> PixelSize? {
    let start = try start(of: path, count: headerBytes) ?? []
    let kind = ImageKind(of: start)
    // Most programs write the directory of a TIFF last.
    let isCut = kind == .tiff && start.count == headerBytes
    return kind?.size(of: try isCut ? self.start(of: path, count: tiffBytes) ?? [] : start)
  }
}
