// The spool: a directory whose subdirectories are the states of a batch, and whose renames are its transitions.
//
//   tmp/         producers write here
//   incoming/    waiting
//   claimed/     <worker>/<number>.<attempt>.<failures>/NAME: a worker has it
//   quarantine/  NAME and NAME.reason.json: cannot be encoded
//   accepted/    marks of batches that are published as they are, on request
//   done/        published, kept on request
//   trash/       published, or purged, and about to be removed
//   notifications/  KEY.json: events that their receiver has refused
//   collect/     a directory for each folder that `collect` watches: its journal, and the batch that it makes
//   ingest/      SESSION/: pictures that came over HTTP, and no batch has yet
//   ingested/    receipts of batches that came over HTTP
//   closing/     HOME/SESSION: a session of which this batcher is to make batches of all pictures, because it is to end

import FileSystem
import FrameBatches
import Glibc

package struct Spool: Sendable {
  package let path: String

  package var incoming: String { path + "/incoming" }
  package var temporary: String { path + "/tmp" }
  package var claimed: String { path + "/claimed" }
  package var quarantine: String { path + "/quarantine" }
  package var accepted: String { path + "/accepted" }
  package var done: String { path + "/done" }
  package var trash: String { path + "/trash" }
  package var notifications: String { path + "/notifications" }
  package var collectors: String { path + "/collect" }
  package var pictures: String { path + "/ingest" }
  package var receipts: String { path + "/ingested" }
  package var closing: String { path + "/closing" }
  /// The default output directory.
  package var defaultOutput: String { path + "/output" }

  /// All its directories but the output.
  package var places: [String] {
    [
      incoming, temporary, claimed, quarantine, accepted, done, trash, collectors, notifications, pictures, receipts,
      closing,
    ]
  }

  /// Opens a spool, and creates its missing directories.
  package init(creating path: String) throws(DiskError) {
    self.init(path)
    for directory in [incoming, temporary, claimed, quarantine, trash] { try DurableFile.makeDirectories(directory) }
  }

  /// Opens an existing spool.
  ///
  /// - Throws: ``Failure``; ``DiskError`` if the disk fails.
  package init(opening path: String) throws {
    self.init(path)
    // The first worker creates the other directories.
    do throws(DiskError) {
      _ = try Directory(opening: incoming)
    } catch {
      guard [ENOENT, ENOTDIR].contains(error.code) else { throw error }
      throw Failure(
        .usage, "", self.path, "no spool, there is no directory incoming in it", advice: "check --spool")
    }
  }

  private init(_ path: String) { self.path = Self.withoutSlash(path) }

  private static func withoutSlash(_ path: String) -> String {
    path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
  }

  /// The waiting batches, by name.
  package func waiting() throws(DiskError) -> [Directory.Entry] {
    try Directory(opening: incoming).entries().filter { BatchDirectory.isComplete($0.name) }
  }

  /// The names of the batches that wait or are in work, also of those that are claimed or put back meanwhile.
  package func owed(limit: Int) throws(DiskError) -> [String] {
    var names = try waiting().prefix(limit).map(\.name)
    for worker in try Directory.entries(ifAt: claimed) where worker.kind == .directory {
      let path = claimed + "/" + worker.name
      for claim in try Directory.entries(ifAt: path) where claim.kind == .directory && names.count < limit {
        names += try Directory.entries(ifAt: path + "/" + claim.name).map(\.name)
      }
    }
    let known = Set(names)
    return names + (try waiting().map(\.name).filter { !known.contains($0) }.prefix(max(0, limit - names.count)))
  }

  /// Whether pictures of a session, which is to end, are not in batches yet.
  package func isClosing(_ session: SessionID) throws(DiskError) -> Bool {
    for home in try Directory.entries(ifAt: closing) where home.kind == .directory {
      if DurableFile.exists(closing + "/\(home.name)/\(session)") { return true }
    }
    return false
  }

  /// Whether a directory may be the output. The spool and its directories may not: a session can be called like them.
  package func allows(output: String) -> Bool {
    let output = DurableFile.resolved(Self.withoutSlash(output))
    let states = places.map(DurableFile.resolved)
    return output != DurableFile.resolved(path) && !states.contains { output == $0 || output.hasPrefix($0 + "/") }
  }

  /// Moves a batch to the trash in one step: half a batch must never look like a batch.
  ///
  /// - Returns: its new path, to be removed by the caller; after a crash the next worker removes it.
  package func hide(_ path: String) throws(DiskError) -> String {
    try DurableFile.makeDirectories(trash)
    let target = trash + "/\(WorkerID())~1"
    try check("rename", path) { rename(path, target) }
    try Directory(opening: DurableFile.parentDirectory(of: path)).sync()
    return target
  }

  /// The worker that put this into the trash.
  static func owner(inTrash name: String) -> String { name.split(separator: "~").prefix(3).joined(separator: "~") }
}
