// Removes the batches of deleted sessions from a spool. The tombstones are there before: from then on a worker refuses these
// batches. It may have looked before that at the batches that it holds, so the removal waits for these first.
//
// A finished batch, in done/ or quarantine/, goes as a whole if one of its sessions was deleted. A batch that still waits goes if
// all of its sessions were deleted; else a worker publishes the others and removes it.

import FileSystem
import FrameBatches
import Glibc
import Sessions
import WorkQueues

struct SpoolBatchRemoval {
  private let spool: Spool
  private let identifier: BatchIdentifier
  /// All deleted sessions, also those of earlier runs.
  private let deleted: Set<SessionID>
  /// Milliseconds to wait for batches that workers hold.
  private let waitMs: Int

  init(_ spool: Spool, deleted: Set<SessionID>, _ identifier: BatchIdentifier, waitMs: Int) {
    self.spool = spool
    self.deleted = deleted
    self.identifier = identifier
    self.waitMs = waitMs
  }

  /// Removes the batches. A failure stops no other removal.
  ///
  /// - Throws: ``Cancelled``.
  func run(_ deletion: inout Deletion) throws {
    try deletion.attempt(removeClaimsOfDeadWorkers)
    try deletion.attempt(waitForWorkers)
    try deletion.attempt { try removeAll(in: spool.incoming, &$0) }
    try deletion.attempt { try removeAll(in: spool.temporary, &$0) }
    try deletion.attempt { deletion in
      for folder in try Directory.entries(ifAt: spool.collectors) where folder.kind == .directory {
        // Beside the drafts there is a journal with file names.
        try removeAll(in: spool.collectors + "/" + folder.name, directoriesOnly: true, &deletion)
      }
    }
    try deletion.attempt { deletion in
      try removeAll(in: spool.done, &deletion) { $0.sessions.contains(where: deleted.contains) }
    }
    try deletion.attempt(removeQuarantined)
    try deletion.attempt(emptyTrash)
  }

  // MARK: - One batch

  /// Returns the sessions of a batch; nil if it cannot be told whether a deleted one is among them, or it is gone.
  private func sessions(
    of path: String, named name: String, _ deletion: inout Deletion
  ) throws -> NamedSessions? {
    if identifier.isCancelled() { throw Cancelled() }
    let found: NamedSessions
    do {
      found = try identifier.sessions(of: path, named: name)
    } catch let failure as DiskError {
      if DurableFile.exists(path) {
        deletion.failures.append(failure)
        deletion.remains.add(unidentified: path, "cannot be read now; run this again")
      }
      return nil
    }
    guard found.isComplete || found.sessions.contains(where: deleted.contains) else {
      if DurableFile.exists(path) { deletion.remains.add(unreadable: path, found) }
      return nil
    }
    return found
  }

  /// Removes a batch, and reports it for each of its sessions.
  private func remove(
    _ path: String, _ sessions: NamedSessions, _ deletion: inout Deletion, by removal: () throws -> Void
  ) throws {
    let files = FileCount(of: path)
    do {
      try removal()
    } catch let failure as DiskError where failure.code == ENOENT && !DurableFile.exists(path) {
      // A worker was faster; it refuses the batch.
      return
    }
    let name = String(decoding: path.utf8.dropFirst(spool.path.utf8.count + 1), as: UTF8.self)
    deletion.add(batch: name, of: sessions, files)
  }

  /// Removes batches in a directory: those whose sessions were all deleted.
  ///
  /// - Parameter isConcerned: whether to remove a batch; nil for this rule.
  private func removeAll(
    in path: String, directoriesOnly: Bool = false, _ deletion: inout Deletion,
    where isConcerned: ((NamedSessions) -> Bool)? = nil
  ) throws {
    for entry in try Directory.entries(ifAt: path) where entry.kind == .directory || !directoriesOnly {
      let batch = path + "/" + entry.name
      // A path cannot have a name that is not UTF-8.
      guard entry.name.utf8.elementsEqual(entry.bytes) else {
        deletion.remains.add(unidentified: batch, "its name is not UTF-8; look at it, and remove it yourself")
        continue
      }
      try deletion.attempt { deletion in
        guard let found = try sessions(of: batch, named: entry.name, &deletion),
          isConcerned?(found) ?? found.sessions.allSatisfy(deleted.contains)
        else { return }
        try remove(batch, found, &deletion) { try DurableFile.removeTree(spool.hide(batch)) }
      }
    }
  }

  // MARK: - Batches that workers hold

  private func removeClaimsOfDeadWorkers(_ deletion: inout Deletion) throws {
    for worker in try Directory.entries(ifAt: spool.claimed) where worker.kind == .directory {
      let path = spool.claimed + "/" + worker.name
      guard WorkerID.isOnThisHost(worker.name) else { continue }
      try deletion.attempt { deletion in
        try WorkerDirectory.withLockIfOwnerDead(path) {
          for claim in try Directory.entries(ifAt: path) where claim.kind == .directory {
            try removeAll(in: path + "/" + claim.name, &deletion)
            rmdir(path + "/" + claim.name)
          }
        }
      }
    }
  }

  /// Waits until no worker holds a batch that it may have claimed before the tombstones were there.
  private func waitForWorkers(_ deletion: inout Deletion) throws {
    let deadline = MonotonicClock.milliseconds() + waitMs
    var held = try heldBatches()
    while true {
      held = held.filter(DurableFile.exists)
      if held.isEmpty || MonotonicClock.milliseconds() >= deadline { break }
      if identifier.isCancelled() { throw Cancelled() }
      usleep(50_000)
    }
    deletion.remains.held = held
  }

  /// Returns the paths of batches that workers hold, and that have a deleted session or tell none.
  private func heldBatches() throws -> [String] {
    var held: [String] = []
    for worker in try Directory.entries(ifAt: spool.claimed) where worker.kind == .directory {
      let path = spool.claimed + "/" + worker.name
      for claim in try Directory.entries(ifAt: path) where claim.kind == .directory {
        for batch in try Directory.entries(ifAt: path + "/" + claim.name) {
          let batch = path + "/" + claim.name + "/" + batch.name
          let found = try? identifier.sessions(of: batch, named: lastComponent(of: batch))
          if found.map({ !$0.isComplete || $0.sessions.contains(where: deleted.contains) }) ?? true {
            held.append(batch)
          }
        }
      }
    }
    return held
  }

  // MARK: - Finished batches

  private func removeQuarantined(_ deletion: inout Deletion) throws {
    let quarantine = Quarantine(of: spool)
    for batch in try quarantine.batches() {
      try deletion.attempt { deletion in
        let former = batch.text("batch") ?? batch.name
        guard let found = try sessions(of: batch.path, named: former, &deletion),
          found.sessions.contains(where: deleted.contains)
        else { return }
        // After a crash between the two, the one that is left tells the session.
        try remove(batch.path, found, &deletion) { try quarantine.purge(batch, reasonFirst: found.isCertain) }
      }
    }
    // Reasons of batches that an interrupted run has removed.
    for reason in try quarantine.reasonsWithoutBatch()
    where BatchReader.session(ofBatchNamed: reason.batch).map(deleted.contains) ?? false {
      try deletion.attempt { _ in try DurableFile.removeTree(reason.path) }
    }
  }

  /// Removes all of the trash: published and removed batches, whose sessions need not be known.
  private func emptyTrash(_ deletion: inout Deletion) throws {
    for entry in try Directory.entries(ifAt: spool.trash) {
      try deletion.attempt { _ in try DurableFile.removeTree(spool.trash + "/" + entry.name) }
    }
    if try DurableFile.isDirectory(spool.trash) { try Directory(opening: spool.trash).sync() }
  }
}
