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

  /// - Parameters:
  ///   - given: the name that the producer gave the batch, perhaps with folders before it; nil if the path tells it.
  ///   - takesTorn: whether to open what can be read of a damaged archive.
  /// - Throws: ``BadBatch``, ``DiskError``, ``Cancelled``.
  init(
    reading path: String, named given: String? = nil, inFolders folderName: String? = nil, files: [String],
    _ options: InputOptions, _ limits: Limits, _ unpacker: (any ArchiveUnpacker)?, takesTorn: Bool = false,
    _ cancellation: Cancellation
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
        try unpacker?.unpack(
          descriptor, name: name, limits: limits, takesTorn: takesTorn, cancellation: cancellation)
        ?? (
          ArchiveContents(
            reading: descriptor, name: name, limits: limits, takesTorn: takesTorn, cancellation: cancellation),
          { _ in }
        )
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

extension InputOptions {
  /// Returns the session that the name of a batch says; nil if it says none that can be used.
  ///
  /// - Parameter name: the name that the producer gave the batch, perhaps with folders before it. ``session`` is not looked at.
  package func session(ofBatchNamed name: String) -> SessionID? {
    SessionID(SessionName(of: OpenedBatch.stem(of: name), sessionFrom).text)
  }

  /// Returns the session that the name of a folder says by the pattern of the options.
  ///
  /// - Returns: nothing without a pattern, and a warning for a name that does not fit.
  /// - Throws: ``BadBatch`` for a name that fits, and whose session cannot be used.
  package func session(ofFolder path: String) throws(BadBatch) -> (id: SessionID?, warning: String?) {
    guard let sessionFrom else { return (nil, nil) }
    let name = SessionName(of: sessionFrom.place(of: path), sessionFrom)
    guard let reading = name.reading, reading.fits else { return (nil, name.reading?.mismatch) }
    guard let id = SessionID(name.text) else {
      throw BadBatch("read", path, reading.fault(name.text), advice: SessionID.rule)
    }
    return (id, nil)
  }
}
