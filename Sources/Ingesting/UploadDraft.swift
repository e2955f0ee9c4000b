// The body of a request on its way: `tmp/<worker>.ingest.part/NAME`. The file has its final name, which may name the batch's session. The
// directory is locked as long as the request lasts: `prune` and the next worker remove those that a dead process left.

import CLinux
import FileSystem
import FrameBatches
import Glibc
import WorkQueues

/// A body that is written to a file and hashed while it comes.
final class UploadDraft {
  private static let ending = ".ingest.part"
  /// After this time a draft of another host belongs to no request: a body has an hour.
  private static let foreignAgeMs: Int64 = 86_400_000

  /// The file.
  let path: String
  private let directory: Directory
  private let file: Int32
  private var sum = SHA256()
  private(set) var size = 0
  private var isOpen = true

  /// - Parameter temporary: a directory on the disk of the final place.
  init(_ name: String, in temporary: String) throws(DiskError) {
    let place = temporary + "/\(WorkerID())" + Self.ending
    try check("mkdir", place) { mkdir(place, 0o775) }
    path = place + "/" + name
    do throws(DiskError) {
      directory = try Directory(opening: place)
      guard try directory.lock() else { throw DiskError("flock", place, code: EWOULDBLOCK) }
      let path = path
      file = try check("create", path) { open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644) }
    } catch {
      rmdir(place)
      throw error
    }
  }

  deinit { discard() }

  func write(_ bytes: UnsafeRawBufferPointer) throws(DiskError) {
    try writeWhole(bytes, to: file, at: size, path: path)
    sum.update(bytes)
    size += bytes.count
  }

  /// Returns the SHA-256 of all bytes.
  func digest() -> String {
    var sum = sum
    return sum.finish()
  }

  /// Gives the file its trace; ``sync()`` makes it durable.
  ///
  /// - Returns: false if the file system keeps no extended attributes.
  func keep(_ trace: TraceParent) -> Bool { KeptTrace.keep(trace, with: file) }

  /// The bytes reach the disk before this returns.
  func sync() throws(DiskError) { try check("fsync", path) { fsync(file) } }

  /// Removes what is left of the draft.
  func discard() {
    guard isOpen else { return }
    isOpen = false
    close(file)
    unlink(path)
    rmdir(directory.path)
  }

  /// Removes the drafts of dead processes. Call it before the first request.
  static func removeAbandoned(in temporary: String) throws(DiskError) {
    for entry in try Directory.entries(ifAt: temporary) where entry.kind == .directory && entry.name.hasSuffix(ending) {
      let path = temporary + "/" + entry.name
      var status = stat()
      guard lstat(path, &status) == 0 else { continue }
      let ageMs = WallClock.nowMs - WallClock.unixMs(status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
      // In a container, the next process may have the number of the last one.
      let isOwn = entry.name.hasPrefix("\(WorkerID.host)~\(getpid())~")
      guard isOwn || WorkerID.isProcessGone(String(entry.name.dropLast(".part".count))) || ageMs > foreignAgeMs,
        let draft = try? Directory(opening: path, followingLinks: false), (try? draft.lock()) == true
      else { continue }
      try DurableFile.removeTree(path)
    }
  }
}
