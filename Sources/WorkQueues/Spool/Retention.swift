// Removes kept batches, batches in quarantine and published sessions that are older than an age. One rename hides each
// before anything of it is removed: after a crash it is there as a whole or not at all, and the next `prune` removes
// the rest. No link is ever followed.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import Sessions

/// Maximum ages in milliseconds; nil for no limit.
package struct Retention: Sendable {
  /// Since a batch came into `done/`.
  package var keptMs: Int64?
  /// Since a batch came into quarantine.
  package var quarantinedMs: Int64?
  /// Since a session's last publication.
  package var sessionsMs: Int64?
  /// Since the publication of what is compacted, in a store.
  package var compactedMs: Int64?
  /// The limits of single segments.
  package var segments = RetentionLimits()
  /// In unix milliseconds.
  let nowMs: Int64

  package init(nowMs: Int64) { self.nowMs = nowMs }
}

extension PruneRun {
  func prune(by retention: Retention) {
    let nowMs = retention.nowMs
    if let ageMs = retention.keptMs { attempt { try pruneKept(before: nowMs - ageMs) } }
    if let ageMs = retention.quarantinedMs { attempt { try pruneQuarantine(before: nowMs - ageMs) } }
    if let ageMs = retention.quarantinedMs { attempt { try pruneAccepted(before: nowMs - ageMs) } }
    if let ageMs = retention.sessionsMs { attempt { try pruneSessions(before: nowMs - ageMs) } }
    attempt {
      for entry in try entries(in: output) where entry.kind == .directory && SessionDirectory.isHidden(entry.name) {
        remove(output + "/" + entry.name, "a session on its way out")
      }
    }
    pruneSegments(by: retention)
  }

  private func pruneKept(before limitMs: Int64) throws {
    for entry in try entries(in: spool.done) {
      let path = spool.done + "/" + entry.name
      guard let cameMs = cameMs(path), cameMs < limitMs else { continue }
      remove(path, "a kept batch") { try DurableFile.removeTree(spool.hide(path)) }
    }
  }

  private func pruneQuarantine(before limitMs: Int64) throws {
    let ending = Quarantine.reasonEnding
    let names = try entries(in: spool.quarantine).map(\.name)
    let all = Set(names)
    for name in names {
      let path = spool.quarantine + "/" + name
      guard let cameMs = cameMs(path), cameMs < limitMs else { continue }
      if name.hasSuffix(ending) && !all.contains(name + ending) {
        // A reason goes with its batch. A reason without one is left from an interrupted removal.
        if all.contains(String(name.dropLast(ending.count))) { continue }
        if try pruned.contains(where: { $0.path == path }) || BadBatch.reason(at: path) == nil { continue }
        remove(path, "a reason without its batch")
      } else {
        remove(path, "a batch in quarantine") {
          try Quarantine(of: spool).purge(Quarantine.Batch(name: name, path: path, reason: nil))
        }
      }
    }
  }

  /// Removes the marks of accepted batches: these have been published since.
  private func pruneAccepted(before limitMs: Int64) throws {
    for entry in try entries(in: spool.accepted) {
      let path = spool.accepted + "/" + entry.name
      if let cameMs = cameMs(path), cameMs < limitMs { remove(path, "a mark of an accepted batch") }
    }
  }

  /// Removes first segments, and what an interrupted removal left of them.
  private func pruneSegments(by retention: Retention) {
    let temporary = TemporaryFiles(output: output)
    defer { temporary.remove() }
    let report = RollingRetention(
      retention.segments, output: output, views: SessionViews(), temporary: { try temporary.next() }
    ).run(nowMs: retention.nowMs, isDryRun: pruning.isDryRun)
    for removed in report.removed { add(removed) }
    skipped += report.held.map { output + "/\($0)" }
    ending += report.ending.map { output + "/\($0)" }.filter { !ending.contains($0) }.sorted()
    for failure in report.failures { attempt { throw failure } }
  }

  private func pruneSessions(before limitMs: Int64) throws {
    let temporary = TemporaryFiles(output: output)
    defer { temporary.remove() }
    for entry in try entries(in: output) where entry.kind == .directory {
      guard let session = SessionID(entry.name) else { continue }
      let directory = SessionDirectory(output: output, session: session)
      attempt {
        // The cheap check first: it is enough for a young session.
        guard try directory.publication(since: limitMs) == nil else { return }
        do {
          _ = try directory.lockedIfFree { try prune(directory, before: limitMs, temporary) }
        } catch is SessionHeld {
          skipped.append(directory.path)
        }
      }
    }
  }

  /// Call it with the session locked.
  private func prune(_ directory: SessionDirectory, before limitMs: Int64, _ temporary: TemporaryFiles) throws {
    guard try !directory.publishedStarts().isEmpty, try directory.publication(since: limitMs) == nil else { return }
    guard try directory.hasAnnouncedEnd() else {
      if !pruning.isDryRun { _ = try SessionViews().endIfOpen(directory) { try temporary.next() } }
      ending.append(directory.path)
      return
    }
    remove(directory.path, "a session") {
      if let reason = pruning.tombstoneReason {
        _ = try SessionTombstones(output: output).add(
          Tombstone(directory.session, deletedAtMs: WallClock.nowMs, reason: reason))
      }
      try DurableFile.removeTree(directory.hide())
    }
  }

  /// The time when something came to its directory: a rename changes the inode's own time, which cannot be set.
  private func cameMs(_ path: String) -> Int64? {
    var status = stat()
    return lstat(path, &status) == 0 ? WallClock.unixMs(status.st_ctim.tv_sec, status.st_ctim.tv_nsec) : nil
  }

  /// The entries of a directory, which may not exist yet.
  ///
  /// - Throws: ``DiskError`` if it is anything else: a link may lead out of the spool.
  private func entries(in path: String) throws(DiskError) -> [Directory.Entry] {
    try DurableFile.isThere(path) ? Directory(opening: path, followingLinks: false).entries() : []
  }
}
