// A producer for the spool: writes a batch in `tmp/`, syncs it, and renames it into `incoming/`.

import Encoding
import FileSystem
import FrameBatches
import Glibc

package struct Enqueuer {
  private static let limits = Limits()

  private let spool: Spool

  package init(spool: Spool) { self.spool = spool }

  /// Copies frames into the spool as one batch.
  ///
  /// - Parameters:
  ///   - paths: image files, or one directory with them and perhaps a `batch.json`.
  ///   - options: facts that the files do not state; the batch states them in its `batch.json`.
  /// - Returns: the batch's name.
  package func enqueue(_ paths: [String], _ options: InputOptions) throws -> String {
    let (name, files, description) = try Self.gather(paths, options)
    let worker = WorkerID()
    let draft = spool.temporary + "/\(worker).part"
    try check("mkdir", draft) { mkdir(draft, 0o775) }
    do {
      // The lock tells `prune` that this draft is in use.
      let directory = try Directory(opening: draft)
      guard try directory.lock() else { throw DiskError("flock", draft, code: EWOULDBLOCK) }
      for file in files { try DurableFile.create(draft + "/" + lastComponent(of: file), Self.bytes(of: file)) }
      if let description { try DurableFile.create(draft + "/" + NativeFormat.description, description) }
      try directory.sync()
      let shown = try DurableFile.firstFree(in: spool.incoming, name) { (target) throws(DiskError) in
        try DurableFile.move(draft, to: target)
      }
      try Directory(opening: spool.incoming).sync()
      return shown
    } catch {
      try? DurableFile.removeTree(draft)
      throw error
    }
  }

  /// Finds the files of a batch, its name, and what its `batch.json` is to state.
  static func gather(
    _ paths: [String], _ options: InputOptions
  ) throws -> (name: String, files: [String], description: [UInt8]?) {
    let files = try self.files(paths)
    let isDirectory = paths.count == 1 && files != paths
    var facts = options
    facts.session = nil
    guard !files.contains(where: { lastComponent(of: $0) == NativeFormat.description }) else {
      guard options == InputOptions() else {
        throw BadBatch(
          "enqueue", NativeFormat.description,
          options.session == nil ? "states the facts itself" : "names the session itself",
          advice: "leave \(options.session == nil ? "the options" : "--session") out, or write them into batch.json")
      }
      return (try complete(BatchReader.name(of: paths[0])), files, nil)
    }
    let session = options.session ?? WorkerID().description.filter { $0 != "~" }
    guard facts != InputOptions() else {
      let start = try instants(files, skippingOthers: isDirectory).min()
      return (try complete(start.map { "\(session)@\($0)" } ?? session), files, nil)
    }
    facts.session = session
    let path = isDirectory ? paths[0] : DurableFile.parentDirectory(of: files[0])
    let batch = try BatchSessions(reading: path, files: isDirectory ? [] : files, options: facts, limits: limits)
    guard batch.readers.count == 1, batch.refused.isEmpty, let reader = batch.readers.first else {
      throw BadBatch(
        "enqueue", path, "frames of several sessions", advice: "enqueue the frames of each session as a batch")
    }
    return (
      try complete("\(reader.batch.session)@\(reader.batch.frames[0].timeMs)"), files,
      NativeFormat.description(of: reader.batch)
    )
  }

  private static func complete(_ name: String) throws -> String {
    guard BatchDirectory.isComplete(name) else {
      throw BadBatch(
        "enqueue", name, "workers ignore this name: it marks an incomplete batch",
        advice: "rename it: no dot in front, no .tmp or .part behind")
    }
    return name
  }

  private static func files(_ paths: [String]) throws -> [String] {
    if paths.count > 1, let directory = paths.first(where: { DurableFile.isReachableDirectory($0) }) {
      throw BadBatch("enqueue", directory, "a directory beside other frames", advice: "enqueue one directory at a time")
    }
    guard paths.count == 1, DurableFile.isReachableDirectory(paths[0]) else {
      for path in paths where !DurableFile.exists(path) {
        throw BadBatch("enqueue", path, "no such file or directory", advice: "check the path")
      }
      return paths
    }
    return try Directory(opening: paths[0]).entries()
      .filter { $0.kind == .file && !isRecorderJunk($0.name) }.map { paths[0] + "/" + $0.name }
  }

  /// - Parameter skippingOthers: whether files without a capture time in the name are part of the batch: then the
  ///   manifest lists them as refused.
  private static func instants(_ files: [String], skippingOthers: Bool) throws -> [Int64] {
    guard !files.isEmpty else { throw BadBatch("enqueue", "frames", "none there", advice: "name at least one image") }
    var seen: Set<String> = []
    let instants: [Int64] = try files.compactMap { file in
      let name = lastComponent(of: file)
      guard seen.insert(name).inserted else {
        throw BadBatch("enqueue", file, "a second file of that name", advice: "enqueue them as two batches")
      }
      if let instant = PlainFormat.instant(ofName: name), limits.instants.contains(instant) { return instant }
      if skippingOthers { return nil }
      throw withoutInstant(file)
    }
    if instants.isEmpty { throw withoutInstant(files[0]) }
    return instants
  }

  private static func withoutInstant(_ file: String) -> BadBatch {
    BadBatch(
      "enqueue", file, "the name is no capture in unix milliseconds",
      advice:
        "name it <unix ms>.jpg or .png, add --name-time or --start and --fps, or send a directory with a batch.json")
  }

  static func bytes(of source: String) throws -> [UInt8] {
    let file = open(source, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else {
      let failure = DiskError("open", source)
      guard [ENOENT, ENOTDIR, EACCES].contains(failure.code) else { throw failure }
      throw BadBatch(
        "enqueue", source, String(cString: strerror(failure.code)).lowercasedFirst, advice: "check the path")
    }
    defer { close(file) }
    switch try readRegularFile(file, path: source, limit: limits.fileBytes) {
    case .refused(let reason):
      throw BadBatch("enqueue", source, reason, advice: "enqueue plain image files of reasonable size")
    case .bytes(let bytes): return bytes
    }
  }
}
