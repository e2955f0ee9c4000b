// Removes leftovers of dead processes, and batches and sessions older than the operator wants to keep. It never touches
// a waiting batch, nor a claimed one, which the next worker takes over; and a published session only on request.

import FileSystem
import FrameBatches
import Glibc
import JSON
import Sessions

package struct Pruning {
  let spool: Spool
  let output: String
  private let retention: Retention
  /// The reason in the tombstones of removed sessions; nil for no tombstones.
  let tombstoneReason: String?
  let isDryRun: Bool

  /// - Parameters:
  ///   - output: nil for the spool's default.
  ///   - tombstoneReason: the reason in the tombstones of removed sessions; nil to let them come back.
  ///   - isDryRun: whether to remove nothing and only report.
  package init(
    spool: Spool, output: String?, retention: Retention = Retention(nowMs: WallClock.nowMs),
    tombstoneReason: String? = nil, isDryRun: Bool
  ) {
    self.spool = spool
    // A link given by the operator is followed; links inside are not.
    self.output = DurableFile.resolved(output ?? spool.defaultOutput)
    self.retention = retention
    self.tombstoneReason = tombstoneReason
    self.isDryRun = isDryRun
  }

  /// Reads the heartbeats of workers of other hosts.
  ///
  /// - Returns: their number; if there are any, wait for a lease before ``run(with:)``.
  package func watch(with monitor: HeartbeatMonitor) throws -> Int {
    var others = 0
    for parent in parents where try DurableFile.isDirectory(parent) {
      for other in try WorkerDirectory.ofOtherHosts(in: parent) {
        others += 1
        _ = try monitor.hasExpired(other)
      }
    }
    return others
  }

  /// The removed paths, those in use, the sessions whose ends have to be announced first, the failures, and what was compacted; nil if
  /// nobody asked for that.
  package typealias Result = (
    pruned: [Pruned], skipped: [String], ending: [String], failures: [any Error], compaction: CompactionReport?
  )

  /// - Parameter monitor: has watched the workers of other hosts for a lease.
  package func run(with monitor: HeartbeatMonitor) -> Result {
    let run = PruneRun(self, monitor)
    // Reasons first: the workers' directories tell which workers are dead.
    run.attempt(run.pruneReasons)
    for parent in parents { run.attempt { try run.pruneDirectories(in: parent) } }
    run.attempt(run.pruneTrash)
    run.attempt(run.pruneDrafts)
    run.attempt(run.pruneNotificationDrafts)
    // Before single videos: their session may go as a whole.
    run.prune(by: retention)
    run.attempt { try run.pruneFiles(atMs: retention.nowMs) }
    return (run.pruned, run.skipped, run.ending, run.failures, nil)
  }

  private var parents: [String] { [spool.claimed, output + "/.staging"] }
}

extension PruneRun {
  /// Reasons without a batch: a worker died between the two, and the batch has another number since.
  fileprivate func pruneReasons() throws {
    let ending = Quarantine.reasonEnding
    for entry in try Directory.entries(ifAt: spool.quarantine) where entry.name.hasSuffix(ending) {
      let path = spool.quarantine + "/" + entry.name
      // A batch may be called like a reason file.
      if try DurableFile.isThere(path + ending) { continue }
      guard let reason = try BadBatch.reason(at: path), let worker = reason["worker"]?.string,
        try isGone(worker), try !DurableFile.isThere(String(path.dropLast(ending.count)))
      else { continue }
      remove(path, "a reason without its batch")
    }
  }

  private func isGone(_ worker: String) throws -> Bool {
    let path = spool.claimed + "/" + worker
    guard !worker.contains("/"), try DurableFile.isDirectory(path) else { return !worker.contains("/") }
    var isGone = false
    try ifOwnerDead(path) { isGone = true }
    return isGone
  }

  /// Calls `body` if the worker with this directory is dead; on this host, with its lock held.
  private func ifOwnerDead(_ path: String, _ body: () throws -> Void) throws {
    if WorkerID.isOnThisHost(lastComponent(of: path)) {
      try WorkerDirectory.withLockIfOwnerDead(path, body)
    } else if try monitor.hasExpired(path) {
      try body()
    }
  }

  /// Directories of dead workers without batches.
  fileprivate func pruneDirectories(in parent: String) throws {
    for entry in try Directory.entries(ifAt: parent) where entry.kind == .directory {
      let path = parent + "/" + entry.name
      attempt {
        try ifOwnerDead(path) {
          // A worker that only lost its connection may come back: remove only files by name, and empty directories.
          let entries = try Directory.entries(ifAt: path)
          let claims = entries.filter { $0.kind == .directory }.map { path + "/" + $0.name }
          if try claims.contains(where: { try !Directory.entries(ifAt: $0).isEmpty }) { return }
          remove(path, "of a worker that is gone") {
            for claim in claims { try check("rmdir", claim) { rmdir(claim) } }
            for file in entries where file.kind != .directory { unlink(path + "/" + file.name) }
            try check("rmdir", path) { rmdir(path) }
          }
        }
      }
    }
  }

  fileprivate func pruneTrash() throws {
    for entry in try Directory.entries(ifAt: spool.trash) where try isGone(Spool.owner(inTrash: entry.name)) {
      remove(spool.trash + "/" + entry.name, "a published batch on its way out")
    }
  }

  /// Drafts of `enqueue`. Other producers remove their own drafts.
  fileprivate func pruneDrafts() throws {
    for entry in try Directory.entries(ifAt: spool.temporary)
    where WorkerID.isOnThisHost(entry.name) && entry.name.hasSuffix(".part") {
      let path = spool.temporary + "/" + entry.name
      guard WorkerID.isProcessGone(String(entry.name.dropLast(5))) else { continue }
      // In another container the same number is another process; all containers of the host see the lock.
      let draft = try Directory(opening: path, followingLinks: false)
      if try draft.lock() { remove(path, "an enqueue that did not end") }
    }
  }

  /// Drafts of refused events.
  fileprivate func pruneNotificationDrafts() throws {
    for entry in try Directory.entries(ifAt: spool.notifications)
    where WorkerID.isOnThisHost(entry.name) && entry.name.hasSuffix(".part") && WorkerID.isProcessGone(entry.name) {
      remove(spool.notifications + "/" + entry.name, "a refused event whose worker died")
    }
  }

  /// Videos that were never published, and files of live packages that no playlist names any more.
  fileprivate func pruneFiles(atMs nowMs: Int64) throws {
    let lists = SupersededLists(output: output)
    for entry in try Directory.entries(ifAt: output) where entry.kind == .directory {
      guard let session = SessionID(entry.name) else { continue }
      let directory = SessionDirectory(output: output, session: session)
      attempt {
        do {
          _ = try directory.lockedIfFree {
            let superseded = try lists.removable(in: directory, atMs: nowMs)
            for path in superseded { remove(path, "a file that no playlist names") }
            if !superseded.isEmpty && !pruning.isDryRun { try lists.removeDue(in: directory, atMs: nowMs) }
            let orphans = try directory.orphans()
            for name in orphans { remove(directory.path + "/" + name, "a video without a manifest") }
            // If nothing else is in it.
            if !orphans.isEmpty && !pruning.isDryRun { rmdir(directory.path) }
          }
        } catch is SessionHeld {
          // The worker that publishes there removes them first.
        }
      }
    }
    if pruning.isDryRun { return }
    for session in lists.sessions() where try !DurableFile.isThere(output + "/\(session)") { try lists.remove(session) }
    lists.tidyUp()
  }
}
