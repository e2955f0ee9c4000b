// Removes the batches of deleted sessions from a spool. The tombstones are there before: from then on a worker refuses these
// batches. It may have looked before that at the batches that it holds, so the removal waits for these first.
//
// A finished batch, in done/ or quarantine/, goes as a whole if one of its sessions was deleted. A batch that still waits goes if
// all of its sessions were deleted; else a worker publishes the others and removes it.

import Batching
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
  /// Those of this run.
  private let begun: Set<SessionID>
  /// Milliseconds to wait for batches that workers hold.
  private let waitMs: Int
  private let isDryRun: Bool

  /// - Parameter isDryRun: whether to find the batches, and to change nothing and wait for nobody.
  init(
    _ spool: Spool, deleted: Set<SessionID>, begun: Set<SessionID>, _ identifier: BatchIdentifier, waitMs: Int,
    isDryRun: Bool
  ) {
    self.spool = spool
    (self.deleted, self.begun) = (deleted, begun)
    self.identifier = identifier
    self.waitMs = isDryRun ? 0 : waitMs
    self.isDryRun = isDryRun
  }

  /// Removes the batches. A failure stops no other removal.
  func removeAll() -> BatchRemovals {
    let steps: [() throws -> BatchRemovals] = [
      closeBatchers, removeClaimsOfDeadWorkers, waitForWorkers, { try removeAll(in: spool.incoming) },
      { try removeAll(in: spool.temporary) }, removeDraftsOfCollectors, removePictures,
      { try removeAll(in: spool.done) { $0.sessions.contains(where: deleted.contains) } }, removeQuarantined,
      emptyTrash,
    ]
    return .of(steps) { try $0() }
  }

  // MARK: - One batch

  /// Returns the sessions of a batch, unless it cannot be told whether a deleted one is among them, or it is gone.
  private func sessions(of path: String, named name: String) throws -> BatchFinding {
    try identifier.cancellation.check()
    let found: NamedSessions
    do {
      found = try identifier.sessions(of: path, named: name)
    } catch let failure as DiskError {
      guard DurableFile.exists(path) else { return .stays(BatchRemovals()) }
      return .stays(BatchRemovals(unidentified: path, "cannot be read now; run this again", failure))
    }
    guard found.isComplete || found.sessions.contains(where: deleted.contains) else {
      return .stays(DurableFile.exists(path) ? BatchRemovals(unreadable: path, found) : BatchRemovals())
    }
    return .found(found)
  }

  /// Removes a batch if it is concerned.
  private func remove(
    _ path: String, named name: String, where isConcerned: (NamedSessions) -> Bool,
    by removal: (NamedSessions) throws -> Void
  ) throws -> BatchRemovals {
    switch try sessions(of: path, named: name) {
    case .stays(let reason): return reason
    case .found(let found):
      guard isConcerned(found) else { return identifier.remains(path, found) }
      let files = FileCount(of: path)
      do {
        if !isDryRun { try removal(found) }
      } catch let failure as DiskError where failure.code == ENOENT && !DurableFile.exists(path) {
        // A worker was faster; it refuses the batch.
        return BatchRemovals()
      }
      let name = String(decoding: path.utf8.dropFirst(spool.path.utf8.count + 1), as: UTF8.self)
      return BatchRemovals(removed: name, found, files)
    }
  }

  /// Removes batches in a directory: those whose sessions were all deleted.
  ///
  /// - Parameter isConcerned: whether to remove a batch; nil for this rule.
  private func removeAll(
    in path: String, directoriesOnly: Bool = false, where isConcerned: ((NamedSessions) -> Bool)? = nil
  ) throws -> BatchRemovals {
    let entries = try Directory.entries(ifAt: path).filter { $0.kind == .directory || !directoriesOnly }
    return .of(entries) { entry in
      let batch = path + "/" + entry.name
      // A path cannot have a name that is not UTF-8.
      guard entry.name.utf8.elementsEqual(entry.bytes) else {
        return BatchRemovals(unidentified: batch, "its name is not UTF-8; look at it, and remove it yourself")
      }
      return try remove(batch, named: entry.name) { found in
        isConcerned?(found) ?? found.sessions.allSatisfy(deleted.contains)
      } by: { _ in
        try DurableFile.removeTree(spool.hide(batch))
      }
    }
  }

  private func removeDraftsOfCollectors() throws -> BatchRemovals {
    .of(try Directory.entries(ifAt: spool.collectors).filter { $0.kind == .directory }, stopsAtFailure: true) {
      folder in
      try removeAll(in: spool.collectors + "/\(folder.name)/drafts", directoriesOnly: true)
    }
  }

  /// Lets batchers make batches of the pictures that wait: these can be removed, or a worker refuses them.
  private func closeBatchers() -> BatchRemovals {
    // Their pictures are found where they wait.
    .of(isDryRun ? [] : begun.sorted { $0.description < $1.description }) { session in
      _ = try SessionClosing(spool).request(session)
      return BatchRemovals()
    }
  }

  /// Returns the sessions of this run of which pictures wait in batchers that other processes have.
  private func closing() throws -> [String] { try begun.filter(spool.isClosing).map { "\(spool.closing)/*/\($0)" } }

  /// Removes what is left of pictures that came over HTTP, and that no batch has yet.
  private func removePictures() -> BatchRemovals {
    .of(deleted.sorted { $0.description < $1.description }) { session in
      let path = spool.pictures + "/\(session)"
      guard try DurableFile.isThere(path) else { return BatchRemovals() }
      let files = FileCount(of: path)
      if !isDryRun { try DurableFile.removeTree(spool.hide(path)) }
      return BatchRemovals(removed: "ingest/\(session)", NamedSessions([session], isCertain: true), files)
    }
  }

  // MARK: - Batches that workers hold

  private func removeClaimsOfDeadWorkers() throws -> BatchRemovals {
    .of(try Directory.entries(ifAt: spool.claimed).filter { $0.kind == .directory }) { worker in
      let path = spool.claimed + "/" + worker.name
      guard WorkerID.isOnThisHost(worker.name) else { return BatchRemovals() }
      var removals = BatchRemovals()
      // A lock could keep a worker from the claims.
      if isDryRun {
        guard try !WorkerDirectory.isAlive(path) else { return removals }
        let claims = try Directory.entries(ifAt: path).filter { $0.kind == .directory }
        return .of(claims) { try removeAll(in: path + "/" + $0.name) }
      }
      try WorkerDirectory.withLockIfOwnerDead(path) {
        let claims = try Directory.entries(ifAt: path).filter { $0.kind == .directory }
        removals = .of(claims, stopsAtFailure: true) { claim in
          let removals = try removeAll(in: path + "/" + claim.name)
          rmdir(path + "/" + claim.name)
          return removals
        }
      }
      return removals
    }
  }

  /// Waits until no worker holds a batch that it may have claimed before the tombstones were there.
  private func waitForWorkers() throws -> BatchRemovals {
    let deadline = MonotonicClock.milliseconds() + waitMs
    var held = try heldBatches()
    while true {
      held = held.filter(DurableFile.exists)
      if try held.isEmpty && closing().isEmpty || MonotonicClock.milliseconds() >= deadline { break }
      try identifier.cancellation.check()
      usleep(50_000)
    }
    return BatchRemovals(held: held + (try closing()))
  }

  /// Returns the paths of batches that workers hold, and that have a deleted session or tell none.
  private func heldBatches() throws -> [String] {
    var held: [String] = []
    for worker in try Directory.entries(ifAt: spool.claimed) where worker.kind == .directory {
      let path = spool.claimed + "/" + worker.name
      // The batches of dead workers were found before; a removal has removed them.
      if try isDryRun && WorkerID.isOnThisHost(worker.name) && !WorkerDirectory.isAlive(path) { continue }
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

  private func removeQuarantined() throws -> BatchRemovals {
    let quarantine = Quarantine(of: spool)
    var removals = BatchRemovals.of(try quarantine.batches()) { batch in
      try remove(batch.path, named: batch.text("batch") ?? batch.name) { found in
        found.sessions.contains(where: deleted.contains)
      } by: { found in
        // After a crash between the two, the one that is left tells the session.
        try quarantine.purge(batch, reasonFirst: found.isByContent)
      }
    }
    if removals.stop == nil { removals += .of([quarantine]) { try removeReasons(in: $0) } }
    return removals
  }

  /// Removes reasons of batches that an interrupted run has removed.
  private func removeReasons(in quarantine: Quarantine) throws -> BatchRemovals {
    let reasons = try quarantine.reasonsWithoutBatch().filter { reason in
      identifier.sessions(byNameOf: reason.batch).sessions.contains(where: deleted.contains)
    }
    return .of(reasons) { reason in
      if !isDryRun { try DurableFile.removeTree(reason.path) }
      return BatchRemovals()
    }
  }

  /// Removes all of the trash: published and removed batches, whose sessions need not be known.
  private func emptyTrash() throws -> BatchRemovals {
    guard !isDryRun else { return BatchRemovals() }
    var removals = BatchRemovals.of(try Directory.entries(ifAt: spool.trash)) { entry in
      try DurableFile.removeTree(spool.trash + "/" + entry.name)
      return BatchRemovals()
    }
    removals += .of([spool.trash]) { trash in
      if try DurableFile.isDirectory(trash) { try Directory(opening: trash).sync() }
      return BatchRemovals()
    }
    return removals
  }
}
