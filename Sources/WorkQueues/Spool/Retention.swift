// Removes what is older than an age: kept batches, batches in quarantine, published sessions. Each goes out of sight by one
// rename before anything of it is removed: after a crash it is there as a whole, or is gone, and what is left of it is
// removed by the next `prune`. Waiting batches are never touched, and no link is ever followed.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import Sessions

/// Ages in milliseconds; nil where nothing is too old.
package struct Retention: Sendable {
  /// Since a batch came into `done/`.
  package var keptMs: Int64?
  /// Since a batch came into quarantine.
  package var quarantinedMs: Int64?
  /// Since something was last published of a session.
  package var sessionsMs: Int64?
  /// In unix milliseconds.
  package var nowMs: Int64

  package init(nowMs: Int64) { self.nowMs = nowMs }

  /// The name of a session while it is removed; no session can have such a name.
  package static let hidden = ".pruned~"

  package func prune(_ spool: Spool, output: String, _ round: PruneRun) {
    if let keptMs { round.attempt { try pruneKept(spool, keptMs, round) } }
    if let quarantinedMs { round.attempt { try pruneQuarantine(spool, quarantinedMs, round) } }
    if let sessionsMs { round.attempt { try pruneSessions(in: output, sessionsMs, round) } }
  }

  /// Sessions whose removal was interrupted.
  package static func finish(in output: String, _ round: PruneRun) throws {
    for entry in try Directory.entries(ofOwn: output) where entry.kind == .directory && entry.name.hasPrefix(hidden) {
      round.remove(output + "/" + entry.name, "a session on its way out")
    }
  }

  /// Older, not as old.
  private func isOlder(_ sinceMs: Int64?, than ageMs: Int64) -> Bool {
    guard let sinceMs else { return false }
    return nowMs - sinceMs > ageMs
  }

  private func pruneKept(_ spool: Spool, _ ageMs: Int64, _ round: PruneRun) throws {
    for entry in try Directory.entries(ofOwn: spool.done) {
      let path = spool.done + "/" + entry.name
      guard isOlder(cameMs(path), than: ageMs) else { continue }
      round.remove(path, "a kept batch") { try DurableFile.removeTree(spool.hide(path)) }
    }
  }

  private func pruneQuarantine(_ spool: Spool, _ ageMs: Int64, _ round: PruneRun) throws {
    let ending = Quarantine.reasonEnding
    let names = try Directory.entries(ofOwn: spool.quarantine).map(\.name)
    let all = Set(names)
    for name in names where isOlder(cameMs(spool.quarantine + "/" + name), than: ageMs) {
      let path = spool.quarantine + "/" + name
      if name.hasSuffix(ending) && !all.contains(name + ending) {
        // A reason goes with its batch; one whose batch has gone already was left by who removed that.
        if all.contains(String(name.dropLast(ending.count))) { continue }
        if try round.pruned.contains(where: { $0.path == path }) || BadBatch.reason(at: path) == nil { continue }
        round.remove(path, "a reason without its batch")
      } else {
        round.remove(path, "a batch in quarantine") {
          try Quarantine(of: spool).purge(Quarantine.Batch(name: name, path: path, reason: nil))
        }
      }
    }
  }

  private func pruneSessions(in output: String, _ ageMs: Int64, _ round: PruneRun) throws {
    for entry in try Directory.entries(ofOwn: output) where entry.kind == .directory {
      guard let session = SessionID(entry.name) else { continue }
      let directory = SessionDirectory(output: output, session: session)
      // The cheap question first: of a session that is young it is the only one.
      if let viewMs = changedMs(directory.path + "/" + SessionView.jsonFile), !isOlder(viewMs, than: ageMs) { continue }
      round.attempt {
        do {
          _ = try directory.lockedIfFree { try prune(directory, in: output, ageMs, round) }
        } catch is SessionHeld {
          round.skip(directory.path)
        }
      }
    }
  }

  /// Call it with the session locked: a worker that waits for the lock finds that the directory is another, or none, and begins
  /// anew.
  private func prune(_ directory: SessionDirectory, in output: String, _ ageMs: Int64, _ round: PruneRun) throws {
    let manifests = try directory.publishedStarts().map { directory.path + "/" + SegmentName.manifest($0) }
    let views = [directory.path + "/" + SessionView.jsonFile]
    guard !manifests.isEmpty, isOlder((manifests + views).compactMap(changedMs).max(), than: ageMs) else { return }
    round.remove(directory.path, "a session") {
      let target = output + "/\(Self.hidden)\(WorkerID())"
      try check("rename", directory.path) { rename(directory.path, target) }
      try Directory(opening: output).sync()
      try DurableFile.removeTree(target)
    }
  }

  /// When something came to where it is: a rename changes the inode's own time, which cannot be set.
  private func cameMs(_ path: String) -> Int64? {
    var status = stat()
    return lstat(path, &status) == 0 ? WallClock.unixMs(status.st_ctim.tv_sec, status.st_ctim.tv_nsec) : nil
  }

  /// When a file was written.
  private func changedMs(_ path: String) -> Int64? {
    var status = stat()
    return lstat(path, &status) == 0 ? WallClock.unixMs(status.st_mtim.tv_sec, status.st_mtim.tv_nsec) : nil
  }
}

extension Directory {
  /// The entries of a directory of ours, which may not have been made yet.
  ///
  /// - Throws: ``DiskError`` where it is something else: a link may lead to what is not ours.
  package static func entries(ofOwn path: String) throws(DiskError) -> [Entry] {
    guard try DurableFile.isThere(path) else { return [] }
    return try Directory(opening: path, followingLinks: false).entries()
  }
}

extension Spool {
  /// Takes a batch out of sight in one step: half a batch must never be taken for a batch.
  ///
  /// - Returns: where it lies now, to be removed; when that does not come to pass, by the next worker.
  func hide(_ path: String) throws(DiskError) -> String {
    try DurableFile.makeDirectories(trash)
    let target = trash + "/\(WorkerID())~1"
    try check("rename", path) { rename(path, target) }
    try Directory(opening: DurableFile.parentDirectory(of: path)).sync()
    return target
  }
}
