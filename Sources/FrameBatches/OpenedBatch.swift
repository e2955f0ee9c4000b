// Opens a batch: a directory, an archive that is unpacked into memory, or a text that is read from its file.

import FileSystem
import Glibc
import JSON

/// A batch whose files can be read, before its format is known.
struct OpenedBatch {
  /// The batch's name in messages.
  let name: String
  var source: BatchSource
  /// Call it once: see ``UnpackedArchive``.
  let release: (SessionID?) -> Void

  /// - Parameter given: the name that the producer gave the batch, perhaps with folders before it; nil if the path tells it.
  /// - Throws: ``BadBatch``, ``DiskError``, ``Cancelled``.
  init(
    reading path: String, named given: String? = nil, inFolders folderName: String? = nil, files: [String],
    _ options: InputOptions, _ limits: Limits, _ unpacker: (any ArchiveUnpacker)?, _ cancellation: Cancellation
  ) throws {
    let isPipe = path == "-"
    let name = isPipe ? "stdin" : folderName ?? given.map(lastComponent(of:)) ?? BatchReader.name(of: path)
    self.name = name
    // A pipe has no name that could tell the session.
    let place = isPipe ? nil : given ?? options.sessionFrom?.place(of: path) ?? (path.hasSuffix(name) ? path : name)
    do {
      let isDirectory = limits.followsLinks ? DurableFile.isReachableDirectory : DurableFile.isDirectory
      if try !files.isEmpty || !isPipe && isDirectory(path) {
        let contents: any BatchContents =
          try files.isEmpty ? DirectoryContents(opening: path, limits: limits) : ListedContents(files, limits: limits)
        var source = BatchSource(name: name, contents: contents, named: place, options)
        if given == nil { source.path = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path }
        self.source = source
        release = { _ in }
        return
      }
      var options = options
      options.clockOffsetMs += DeliveredName(reading: name).clockOffsetMs
      // The name of a batch from a pipe is its session.
      let stem = isPipe ? options.session ?? name : Self.stem(of: name)
      let stemPlace = place.map(Self.stem(of:))
      let file = try isPipe ? nil : BatchFile(opening: path, name: name, followingLinks: limits.followsLinks)
      if let text = try file.flatMap({ try TextDocument($0, name: name, limits: limits) }) {
        source = BatchSource(name: stem, contents: StreamContents(.file(text)), named: stemPlace, options)
        release = { _ in }
        return
      }
      if let file, case .video(let video)? = try FileKind(of: file.bytes(0..<min(file.size, 1_024))), video.hasSignature
      {
        throw BadBatch(
          "read", name, "no known format: the file is \(video.described)",
          advice: video.advice(for: limits.followsLinks ? path : name))
      }
      let descriptor = file?.descriptor ?? STDIN_FILENO
      let unpacked: UnpackedArchive =
        try unpacker?.unpack(descriptor, name: name, limits: limits, cancellation: cancellation)
        ?? (ArchiveContents(reading: descriptor, name: name, limits: limits, cancellation: cancellation), { _ in })
      source = BatchSource(name: stem, contents: unpacked.contents, named: stemPlace, options)
      release = unpacked.release
    } catch let failure as DiskError {
      throw failure.blaming(name) ?? failure
    }
  }

  /// The suffixes of archives. A longer suffix comes before a shorter one that it ends in.
  private static let archiveSuffixes = [
    ".tar.gz", ".tar.zst", ".tgz", ".tar", ".webp.frames", ".frames.zst", ".frames.gz", ".frames", ".json.gz",
    ".jsonl.gz", ".json.zst", ".jsonl.zst", ".jsonl", ".json", ".zip", ".gz", ".zst",
  ]

  /// Returns the name that the producer gave a file, perhaps with folders before it, without archive suffixes.
  static func stem(of path: String) -> String {
    let folders = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { path[...$0] } ?? path[..<path.startIndex]
    let name = folders + DeliveredName(reading: String(path[folders.endIndex...])).name
    let suffix = archiveSuffixes.first { name.lowercased().hasSuffix($0) }
    return String(name.dropLast(suffix?.count ?? 0))
  }
}

extension BatchSource {
  /// - Parameter place: the batch's name without an archive's ending, perhaps with folders before it; nil for a batch without a name.
  fileprivate init(name: String, contents: any BatchContents, named place: String?, _ options: InputOptions) {
    self.init(name: name, contents: contents, session: options.session, options: options)
    guard options.session == nil, let place else { return }
    let said = SessionName(of: place, options.sessionFrom)
    (session, sessionName) = (said.text, said)
  }
}

/// A file that stays open as long as this value exists.
final class BatchFile: Sendable {
  let descriptor: Int32
  /// The size in bytes; at least one.
  let size: Int
  private let name: String

  /// Opens a regular file that is not empty.
  init(opening path: String, name: String, followingLinks: Bool) throws {
    let links = followingLinks ? 0 : O_NOFOLLOW
    let descriptor = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | links)
    guard descriptor >= 0 else {
      let failure = DiskError("open", path)
      switch failure.code {
      case ELOOP:
        throw BadBatch(
          "read", name, FileRefusal.link + (followingLinks ? " in a circle" : ""),
          advice: followingLinks ? "check the path" : "send the file or the folder that it leads to")
      case ENXIO: throw BadBatch("read", name, "not a regular file", advice: UnknownBatch.advice)
      default: throw failure
      }
    }
    self.descriptor = descriptor
    self.name = name
    var status = stat()
    let code = unsafe fstat(descriptor, &status) == 0 ? 0 : errno
    size = Int(status.st_size)
    if code != 0 { throw DiskError("fstat", path, code: code) }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw BadBatch("read", name, "not a regular file", advice: UnknownBatch.advice)
    }
    guard size > 0 else { throw BadBatch("read", name, "an empty file", advice: UnknownBatch.advice) }
  }

  deinit { close(descriptor) }

  /// Reads `count` bytes, or fewer if the file has become shorter.
  func bytes(_ range: Range<Int>) throws(DiskError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: range.count)
    var filled = 0
    while filled < bytes.count {
      let count = try check("read", name) {
        unsafe bytes.withUnsafeMutableBytes {
          unsafe pread(descriptor, $0.baseAddress! + filled, $0.count - filled, off_t(range.lowerBound + filled))
        }
      }
      if count == 0 { break }
      filled += count
    }
    bytes.removeLast(bytes.count - filled)
    return bytes
  }
}

/// A text in a file: JSON, or lines of JSON. Parts are read when they are needed, so that a large text costs no memory.
package struct TextDocument: Sendable {
  private let file: BatchFile
  package var count: Int { file.size }

  /// - Returns: nil for a file that is not JSON by its first characters.
  /// - Throws: ``BadBatch`` for a text beyond the limits; ``DiskError``.
  init?(_ file: BatchFile, name: String, limits: Limits) throws {
    self.file = file
    let start = try bytes(0..<min(file.size, 64))
    guard Self.isJSON(start) else { return nil }
    guard file.size <= limits.unpackedBytes else {
      throw BadBatch(
        "read", name, "\(file.size) bytes, more than the limit of \(limits.unpackedBytes)",
        advice: Limits.advice("unpacked-bytes", file.size))
    }
  }

  /// Returns whether a text begins as a JSON object or array does. A byte order mark may precede it.
  package static func isJSON(_ start: some Collection<UInt8>) -> Bool {
    let mark = JSONParser.byteOrderMark
    let first = start.dropFirst(start.starts(with: mark) ? mark.count : 0).first {
      ![0x20, 0x0A, 0x0D, 0x09].contains($0)
    }
    return first == UInt8(ascii: "{") || first == UInt8(ascii: "[")
  }

  /// Reads `count` bytes, or fewer if the file has become shorter.
  func bytes(_ range: Range<Int>) throws(DiskError) -> [UInt8] { try file.bytes(range) }
}

extension DiskError {
  /// Returns a `BadBatch` if the producer caused the error: the batch is not readable, or names a missing file.
  fileprivate func blaming(_ batch: String) -> (any Error)? {
    switch code {
    case ENOENT, ENOTDIR: BadBatch("read", batch, "no such file or directory", advice: "check the path")
    case ENAMETOOLONG: BadBatch("read", batch, "file name too long", advice: "check the path")
    // Another process holds a write lease (fcntl(2), F_SETLEASE); a non-blocking open does not wait for it.
    case EAGAIN: BadBatch("read", batch, BadBatch.leased, advice: "send it again when no other process uses it")
    case EACCES, EPERM: BadBatch("read", batch, BadBatch.denied, advice: "make it readable for the worker")
    default: nil
    }
  }
}
