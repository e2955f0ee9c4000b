// Removes leftovers of dead processes, and what is older than the operator wants it kept. Nothing
// that is owed is touched: a claimed batch is the next worker's. Nor is, unless it was asked for, what is published.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import JSON
import Sessions

package struct Pruning {
  private let spool: Spool
  private let output: String
  private let retention: Retention?
  private let isDryRun: Bool

  /// - Parameters:
  ///   - retention: what is too old; nil where nothing is.
  ///   - isRehearsal: whether to remove nothing and only say what would go.
  package init(spool: Spool, output: String?, retention: Retention? = nil, isDryRun: Bool) {
    self.spool = spool
    // A link that its owner names is followed; links inside are not.
    self.output = DurableFile.resolved(output ?? spool.defaultOutput)
    self.retention = retention
    self.isDryRun = isDryRun
  }

  /// Looks at the workers of other hosts.
  ///
  /// - Returns: how many there are; if any, this is done again after a lease, before ``run(with:)``.
  package func watch(with witness: HeartbeatMonitor) throws -> Int {
    var others = 0
    for parent in parents where try DurableFile.isDirectory(parent) {
      for other in try WorkerDirectory.ofOtherHosts(in: parent) {
        others += 1
        _ = try witness.hasExpired(other)
      }
    }
    return others
  }

  /// - Parameter witness: who has watched the workers of other hosts for a lease.
  /// - Returns: what has gone, what was left because it is in use, and what went wrong with single things.
  package func run(with witness: HeartbeatMonitor) -> (pruned: [Pruned], skipped: [String], failures: [any Error]) {
    let round = PruneRun(isDryRun: isDryRun, witness: witness)
    // Reasons first: whether their workers live is said by the directories.
    round.attempt { try pruneReasons(round) }
    for parent in parents { round.attempt { try pruneDirectories(in: parent, round) } }
    round.attempt { try pruneTrash(round) }
    round.attempt { try pruneDrafts(round) }
    // Before single videos: their session may go as a whole.
    retention?.prune(spool, output: output, round)
    round.attempt { try Retention.finish(in: output, round) }
    round.attempt { try pruneVideos(round) }
    return (round.pruned, round.skipped, round.failures)
  }

  private var parents: [String] { [spool.claimed, output + "/.staging"] }

  private func entries(of path: String) throws -> [Directory.Entry] {
    try DurableFile.isDirectory(path) ? Directory(opening: path).entries() : []
  }

  /// Reasons whose batch never came: a worker died between the two, and the batch has got another number since.
  private func pruneReasons(_ round: PruneRun) throws {
    let ending = Quarantine.reasonEnding
    for entry in try entries(of: spool.quarantine) where entry.name.hasSuffix(ending) {
      let path = spool.quarantine + "/" + entry.name
      // A batch may be called like that.
      if try DurableFile.isThere(path + ending) { continue }
      guard let reason = try BadBatch.reason(at: path), let worker = reason["worker"]?.string,
        try isGone(worker, round), try !DurableFile.isThere(String(path.dropLast(ending.count)))
      else { continue }
      round.remove(path, "a reason without its batch")
    }
  }

  private func isGone(_ worker: String, _ round: PruneRun) throws -> Bool {
    let path = spool.claimed + "/" + worker
    guard !worker.contains("/"), try DurableFile.isDirectory(path) else { return !worker.contains("/") }
    if !WorkerID.isOnThisHost(worker) { return try round.witness.hasExpired(path) }
    var isGone = false
    try WorkerDirectory.withLockIfOwnerDead(path) { isGone = true }
    return isGone
  }

  /// Directories of dead workers without batches.
  private func pruneDirectories(in parent: String, _ round: PruneRun) throws {
    for entry in try entries(of: parent) where entry.kind == .directory {
      let path = parent + "/" + entry.name
      let prune = {
        // A worker that was only cut off may come back at any moment: nothing is removed here but files by their names, and
        // directories that are empty.
        let inside = try entries(of: path)
        let claims = inside.filter { $0.kind == .directory }.map { path + "/" + $0.name }
        if try claims.contains(where: { try !entries(of: $0).isEmpty }) { return }
        round.remove(path, "of a worker that is gone") {
          for claim in claims { try check("rmdir", claim) { rmdir(claim) } }
          for file in inside where file.kind != .directory { unlink(path + "/" + file.name) }
          try check("rmdir", path) { rmdir(path) }
        }
      }
      round.attempt {
        if WorkerID.isOnThisHost(entry.name) {
          try WorkerDirectory.withLockIfOwnerDead(path, prune)
        } else if try round.witness.hasExpired(path) {
          try prune()
        }
      }
    }
  }

  private func pruneTrash(_ round: PruneRun) throws {
    for entry in try entries(of: spool.trash) where try isGone(Spool.owner(inTrash: entry.name), round) {
      round.remove(spool.trash + "/" + entry.name, "a published batch on its way out")
    }
  }

  /// Drafts of `enqueue`; drafts of other producers are their own business.
  private func pruneDrafts(_ round: PruneRun) throws {
    for entry in try entries(of: spool.temporary)
    where WorkerID.isOnThisHost(entry.name) && entry.name.hasSuffix(".part") {
      let path = spool.temporary + "/" + entry.name
      guard WorkerID.isProcessGone(String(entry.name.dropLast(5))) else { continue }
      // In another container the same number is another process; the lock is seen from everywhere on the host.
      let draft = try Directory(opening: path, followingLinks: false)
      if try draft.lock() { round.remove(path, "an enqueue that did not end") }
    }
  }

  /// Videos that were never published.
  private func pruneVideos(_ round: PruneRun) throws {
    for entry in try entries(of: output) where entry.kind == .directory {
      guard let session = SessionID(entry.name) else { continue }
      let directory = SessionDirectory(output: output, session: session)
      round.attempt {
        do {
          _ = try directory.lockedIfFree {
            let orphans = try directory.orphans()
            for name in orphans { round.remove(directory.path + "/" + name, "a video without a manifest") }
            // Where it was all there was.
            if !orphans.isEmpty && !isDryRun { rmdir(directory.path) }
          }
        } catch is SessionHeld {
          // A worker that publishes there removes them first.
        }
      }
    }
  }
}
