// A producer for the spool: writes a batch in `tmp/`, syncs it, and renames it into `incoming/`.

import FileSystem
import FrameBatches
import Glibc

package struct Enqueuer {
  private let spool: Spool
  private let limits: Limits

  /// - Parameter limits: those of the workers.
  package init(spool: Spool, limits: Limits = Limits()) { (self.spool, self.limits) = (spool, limits) }

  /// Copies frames into the spool as one batch, or as several if they are more than the limits of one.
  ///
  /// - Parameters:
  ///   - paths: image files, or one directory with them and perhaps a `batch.json`.
  ///   - options: facts that the files do not state; the batch states them in its `batch.json`.
  ///   - shown: called with the name of each batch that workers see.
  package func enqueue(_ paths: [String], _ options: InputOptions, shown: (String) -> Void) throws {
    for batch in try EnqueuedBatch.all(of: paths, options, limits) { shown(try enqueue(batch)) }
  }

  /// - Returns: the batch's name.
  private func enqueue(_ batch: EnqueuedBatch) throws -> String {
    let worker = WorkerID()
    let draft = spool.temporary + "/\(worker).part"
    try check("mkdir", draft) { mkdir(draft, 0o775) }
    do {
      // The lock tells `prune` that this draft is in use.
      let directory = try Directory(opening: draft)
      guard try directory.lock() else { throw DiskError("flock", draft, code: EWOULDBLOCK) }
      for file in batch.files {
        try DurableFile.create(draft + "/" + lastComponent(of: file), Self.bytes(of: file, limits))
      }
      if let description = batch.description {
        try DurableFile.create(draft + "/" + NativeFormat.description, description)
      }
      try directory.sync()
      let shown = try DurableFile.firstFree(in: spool.incoming, batch.name) { (target) throws(DiskError) in
        try DurableFile.move(draft, to: target)
      }
      try Directory(opening: spool.incoming).sync()
      return shown
    } catch {
      try? DurableFile.removeTree(draft)
      throw error
    }
  }

  static func bytes(of source: String, _ limits: Limits) throws -> [UInt8] {
    let file = open(source, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else {
      let failure = DiskError("open", source)
      guard [ENOENT, ENOTDIR, EACCES].contains(failure.code) else { throw failure }
      throw BadBatch(
        "enqueue", source, String(cString: strerror(failure.code)).lowercasedFirst, advice: "check the path")
    }
    defer { close(file) }
    switch try readRegularFile(file, path: source, limit: limits.fileBytes) {
    case .refused(let refusal):
      throw BadBatch("enqueue", source, "\(refusal)", advice: "enqueue plain image files of reasonable size")
    case .bytes(let bytes): return bytes
    }
  }
}
