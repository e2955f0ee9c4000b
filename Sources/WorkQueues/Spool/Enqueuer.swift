// The producer's side of the spool: write in a hidden place, make it durable, show it in one step.

import Encoding
import FileSystem
import FrameBatches
import Glibc

package struct Enqueuer {
  private let spool: Spool
  private let limits: Limits

  package init(spool: Spool, limits: Limits = Limits()) {
    self.spool = spool
    self.limits = limits
  }

  /// Copies frames into the spool as one batch.
  ///
  /// - Parameters:
  ///   - paths: image files named by their captures, or one directory with them and perhaps a `batch.json`.
  ///   - session: nil for a new session, or for the one that `batch.json` names.
  /// - Returns: the batch's name.
  package func enqueue(_ paths: [String], session: String?) throws -> String {
    let (name, files) = try Self.gather(paths, session: session, limits)
    let worker = WorkerID()
    let draft = spool.temporary + "/\(worker).part"
    try check("mkdir", draft) { mkdir(draft, 0o775) }
    do {
      // The lock tells cleanup that this draft is in use.
      let directory = try Directory(opening: draft)
      guard try directory.lock() else { throw DiskError("flock", draft, code: EWOULDBLOCK) }
      for file in files { try DurableFile.create(draft + "/" + lastComponent(of: file), Self.bytes(of: file, limits)) }
      try directory.sync()
      return try show(draft, as: name)
    } catch {
      try? DurableFile.removeTree(draft)
      throw error
    }
  }

  /// The name of a batch, and its files.
  static func gather(
    _ paths: [String], session: String?, _ limits: Limits
  ) throws -> (name: String, files: [String]) {
    let files = try self.files(paths)
    let isDirectory = paths.count == 1 && files != paths
    let description = files.first { lastComponent(of: $0) == NativeFormat.description }
    if description != nil && session != nil {
      throw BadBatch(
        "enqueue", NativeFormat.description, "names the session itself", advice: "leave --session out")
    }
    let instants = try description == nil ? self.instants(files, limits, skippingOthers: isDirectory) : []
    let new = WorkerID().description.filter { $0 != "~" }
    let named = session ?? (description == nil ? new : BatchReader.name(of: paths[0]))
    let name = instants.min().map { "\(named)@\($0)" } ?? named
    guard BatchDirectory.isComplete(name) else {
      throw BadBatch(
        "enqueue", name, "workers ignore this name: it marks an incomplete batch",
        advice: "rename it: no dot in front, no .tmp or .part behind")
    }
    return (name, files)
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

  /// - Parameter skippingOthers: files of a directory whose names are no capture times go along: the manifest lists them as
  ///   refused.
  private static func instants(_ files: [String], _ limits: Limits, skippingOthers: Bool) throws -> [Int64] {
    guard !files.isEmpty else { throw BadBatch("enqueue", "frames", "none there", advice: "name at least one image") }
    var seen: Set<String> = []
    let instants: [Int64] = try files.compactMap { file in
      let name = lastComponent(of: file)
      guard seen.insert(name).inserted else {
        throw BadBatch("enqueue", file, "a second file of that name", advice: "enqueue them as two batches")
      }
      guard let instant = PlainFormat.instant(ofName: name), limits.instants.contains(instant) else {
        if skippingOthers { return nil }
        throw BadBatch(
          "enqueue", file, "the name is no capture in unix milliseconds",
          advice: "name it <unix ms>.jpg or .png, or send a directory with a batch.json")
      }
      return instant
    }
    guard !instants.isEmpty else {
      throw BadBatch(
        "enqueue", files[0], "the name is no capture in unix milliseconds",
        advice: "name it <unix ms>.jpg or .png, or send a directory with a batch.json")
    }
    return instants
  }

  /// The bytes of a file that is to be part of a batch.
  package static func bytes(of source: String, _ limits: Limits) throws -> [UInt8] {
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

  private func show(_ draft: String, as name: String) throws -> String {
    let shown = try DurableFile.firstFree(in: spool.incoming, name) { (target) throws(DiskError) in
      try DurableFile.move(draft, to: target)
    }
    try Directory(opening: spool.incoming).sync()
    return shown
  }
}
