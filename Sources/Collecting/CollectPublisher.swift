// Puts each batch into `incoming/` exactly once, whatever happens between two steps. The batches of all sessions that are due take
// each step together, so that many sessions cost hardly more syncs than one:
//
//   1. The drafts: copies of the frames and a batch.json in `collect/<digest>/NAME`, synced. NAME has a random number in it.
//   2. Lines in the journal, synced: NAME, and name, inode, size and time of each source.
//   3. The drafts are renamed to `incoming/NAME`.
//   4. The sources are removed, unless they are to be kept.
//   5. Second lines in the journal: the batches are done, and these sources are still there.
//
// After a crash before step 2 a draft is not in the journal: it is removed, and the sources are found again. After a later crash
// the steps go on with the third. If a draft is gone then, the batch was shown; a worker may already have it.

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
  /// The directory of the journal.
  let home: String
  private let folder: String
  private let spool: Spool
  private let keepsSources: Bool
  private let limits: Limits
  /// Held until the end.
  private let lock: OutputFile
  private let journal: CollectJournal
  let held: HeldPictures
  /// Drafts that may not be in the journal yet.
  private var begun: [CollectRecord] = []
  private var areSynced = false
  /// Copies that drafts have now.
  private var copies: [String] = []
  /// Names that are written again and again: their files stay, because the recorder may replace one at any time.
  private(set) var rewritten: Set<String> = []
  /// Sources that could not be removed since the last question.
  private(set) var unremovable: [UnremovableFile] = []

  /// - Parameter folder: its path without links.
  init(_ folder: String, _ spool: Spool, keepsSources: Bool, limits: Limits) throws {
    (self.folder, self.spool, self.keepsSources, self.limits) = (folder, spool, keepsSources, limits)
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
    held = try HeldPictures(in: home, journal, limits: limits)
  }

  /// The sessions that go on.
  var sessions: [CollectedGroup: CollectedSession] { journal.sessions }

  /// Whether a batch has this file.
  func isTaken(_ file: FolderFile) -> Bool { journal.taken[file.name] == file.stamp }

  /// Whether a batch has another version of this file.
  func hasOtherVersion(of file: FolderFile) -> Bool { journal.taken[file.name].map { $0 != file.stamp } ?? false }

  /// Notes that a name is written again: another version of it was seen.
  func noteRewriting(of name: String) { rewritten.insert(name) }

  /// Forgets a name whose file is gone.
  func forgetRewriting(of name: String) { rewritten.remove(name) }

  /// The frames of batches that ``finish()`` has to publish.
  var begunFrames: Int { begun.reduce(0) { $0 + $1.files.count } }

  /// Writes the draft of a batch. Nothing has changed after a failure.
  func prepare(_ plan: BatchPlan, times: CaptureTimes) throws -> CollectDraft {
    let draft = try CollectDraft(plan, in: home, from: folder, held, times: times, limits: limits)
    if let record = draft.record { begun.append(record) }
    copies += draft.copies
    areSynced = false
    return draft
  }

  /// Does the steps after the drafts. After a failure it is to be called again.
  ///
  /// - Returns: the batches that are published now, of this run or of an earlier one.
  func finish() throws -> [CollectRecord] {
    if !begun.isEmpty {
      if !areSynced { try CollectDraft.sync(begun.map(\.batch), in: home) }
      areSynced = true
      try journal.append(begun.map(JournalLine.batch))
      begun = []
      held.remove(copies)
      copies = []
    }
    let records = journal.unfinished
    guard !records.isEmpty else { return [] }
    for record in records {
      let draft = home + "/" + record.batch
      if try DurableFile.isThere(draft), try !DurableFile.move(draft, to: spool.incoming + "/" + record.batch) {
        // The rename is done, but its other half was lost.
        try DurableFile.removeTree(draft)
      }
    }
    try Directory(opening: spool.incoming).sync()
    try Directory(opening: home).sync()
    let kept = try keepsSources ? records.map(\.files) : remove(records)
    try journal.append(zip(records, kept).map { .done($0.batch, kept: $1) })
    return records
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
  /// - Returns: the files of each batch that stay.
  private func remove(_ records: [CollectRecord]) throws(DiskError) -> [[FolderFile]] {
    var sources = SourceFolders(folder)
    var touched: [String: Directory] = [:]
    var kept: [[FolderFile]] = []
    for record in records {
      var left: [FolderFile] = []
      for file in record.files {
        guard let directory = try sources.directory(of: file) else {
          // The folder may come back: a mount that is away.
          left.append(file)
          continue
        }
        let name = lastComponent(of: file.name)
        guard directory.sourceStamp(of: name) == file.stamp else { continue }
        if rewritten.contains(file.name) {
          left.append(file)
          continue
        }
        touched[directory.path] = directory
        if unlinkat(directory.descriptor, name, 0) == 0 || errno == ENOENT { continue }
        let failure = DiskError("unlink", folder + "/" + file.name)
        guard [EACCES, EPERM, EROFS].contains(failure.code) else { throw failure }
        left.append(file)
        unremovable.append(UnremovableFile(name: file.name, error: failure))
      }
      kept.append(left)
    }
    do throws(DiskError) {
      // After a power cut they must not come back without the journal's knowledge.
      try Directory.sync(touched.values)
    } catch  where [EINVAL, EROFS, EBADF, ENOTSUP].contains(error.code) {
      // A file system that syncs no directories.
    }
    return kept
  }
}
