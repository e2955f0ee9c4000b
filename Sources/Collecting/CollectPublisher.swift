// Puts each batch into `incoming/` exactly once, whatever happens between two steps:
//
//   1. The draft: copies of the frames and a batch.json in `collect/<digest>/NAME`, synced. NAME has a random number in it.
//   2. A line in the journal, synced: NAME, and name, inode, size and time of each source.
//   3. The draft is renamed to `incoming/NAME`.
//   4. The sources are removed, unless they are to be kept.
//   5. A second line in the journal: the batch is done, and these sources are still there.
//
// After a crash before step 2 the draft is not in the journal: it is removed, and the sources are found again. After a later crash
// the steps go on with the third. If the draft is gone then, the batch was shown; a worker may already have it.

import FileSystem
import FrameBatches
import Glibc
import WorkQueues

/// Another collector watches the folder.
package struct FolderInUse: Error, CustomStringConvertible {
  let folder: String
  package var description: String { "\(folder): another collect watches it; stop that one first" }
}

/// A file that stays in the folder because it cannot be removed.
package struct UnremovableFile: Sendable {
  package let name: String
  package let error: DiskError
}

final class CollectPublisher {
  private let home: String
  private let folder: String
  private let spool: Spool
  private let keepsSources: Bool
  /// Held until the end.
  private let lock: OutputFile
  private let journal: CollectJournal
  /// A draft that may not be in the journal yet.
  private var begun: CollectRecord?
  /// Sources that could not be removed since the last question.
  private(set) var unremovable: [UnremovableFile] = []

  /// - Parameter folder: its path without links.
  init(_ folder: String, _ spool: Spool, keepsSources: Bool) throws {
    self.folder = folder
    self.spool = spool
    self.keepsSources = keepsSources
    home = spool.collectors + "/" + String(SHA256.hex(of: Array(folder.utf8)).prefix(16))
    try DurableFile.makeDirectories(home)
    do throws(DiskError) {
      lock = try OutputFile(restarting: home + "/lock")
    } catch {
      throw error.code == EWOULDBLOCK ? FolderInUse(folder: folder) : error
    }
    journal = try CollectJournal(home + "/journal")
    let owed = Set(journal.unfinished.map(\.batch))
    for entry in try Directory(opening: home).entries() where entry.kind == .directory && !owed.contains(entry.name) {
      try DurableFile.removeTree(home + "/" + entry.name)
    }
  }

  /// The sessions that go on.
  var sessions: [CaptureGroup: CollectedSession] { journal.sessions }

  /// Whether a batch has this file.
  func isTaken(_ file: FolderFile) -> Bool { journal.taken[file.name] == file.stamp }

  /// Writes the draft of a batch. Nothing has changed after a failure.
  func prepare(
    _ plan: BatchPlan, options: InputOptions, limits: Limits, refine: ([CapturedFile]) -> [CapturedFile]
  ) throws -> CollectDraft {
    let draft = try CollectDraft(
      plan, in: home, from: Directory(opening: folder), options: options, limits: limits, refine: refine)
    begun = draft.record
    return draft
  }

  /// Does the steps after the draft. After a failure it is to be called again.
  ///
  /// - Returns: the batch that is published now, of this run or of an earlier one; nil if none was begun.
  func finish() throws -> CollectRecord? {
    if let record = begun {
      try journal.append(.batch(record))
      begun = nil
    }
    guard let record = journal.unfinished.first else { return nil }
    let draft = home + "/" + record.batch
    if try DurableFile.isThere(draft), try !DurableFile.move(draft, to: spool.incoming + "/" + record.batch) {
      // The rename is done, but its other half was lost.
      try DurableFile.removeTree(draft)
    }
    try Directory(opening: spool.incoming).sync()
    try Directory(opening: home).sync()
    let kept = try keepsSources ? record.files : remove(record.files)
    try journal.append(.done(record.batch, kept: kept))
    return record
  }

  /// Writes the journal anew if it has grown.
  func compactIfLarge() throws {
    if journal.isLarge { try journal.compact(in: Directory(opening: folder)) }
  }

  /// Hands out the sources that could not be removed.
  func takeUnremovable() -> [UnremovableFile] {
    defer { unremovable = [] }
    return unremovable
  }

  /// Removes sources that are still the files that were copied.
  ///
  /// - Returns: the files that may not be removed.
  private func remove(_ files: [FolderFile]) throws(DiskError) -> [FolderFile] {
    let directory = try Directory(opening: folder)
    var kept: [FolderFile] = []
    for file in files where directory.sourceStamp(of: file.name) == file.stamp {
      if unlinkat(directory.descriptor, file.name, 0) == 0 || errno == ENOENT { continue }
      let failure = DiskError("unlink", folder + "/" + file.name)
      guard [EACCES, EPERM, EROFS].contains(failure.code) else { throw failure }
      kept.append(file)
      unremovable.append(UnremovableFile(name: file.name, error: failure))
    }
    do throws(DiskError) {
      // After a power cut they must not come back without the journal's knowledge.
      try directory.sync()
    } catch  where [EINVAL, EROFS, EBADF, ENOTSUP].contains(error.code) {
      // A file system that syncs no directories.
    }
    return kept
  }
}
