import FileSystem
import FrameBatches
import JSON
import Sessions

/// The result of one run of `delete`: what it removed, what it left, and how it ended. The result of a dry run is what another run
/// would remove.
package struct Deletion {
  private let isDryRun: Bool
  /// The removals in each session that has a tombstone of this run.
  package private(set) var reports: [SessionID: DeletionReport] = [:]
  package private(set) var remains = RemainingBatches()
  /// Failures that did not stop the run.
  package private(set) var failures: [any Error] = []
  /// ``Cancelled``; or a failure of a tombstone: then nothing is removed.
  package internal(set) var end = Result<Void, any Error>.success(())

  init(isDryRun: Bool) { self.isDryRun = isDryRun }

  mutating func begin(_ tombstone: Tombstone) {
    reports[tombstone.session] = DeletionReport(tombstone, isDryRun: isDryRun)
  }

  mutating func add(_ removed: RemovedSession, of session: SessionID) { reports[session]?.session = removed }

  mutating func add(failure: any Error) { failures.append(failure) }

  /// Adds each removed batch to the report of each of its sessions, and what is left.
  ///
  /// - Throws: ``Cancelled`` if the removal was stopped.
  mutating func add(_ batches: BatchRemovals) throws {
    for (name, sessions, files) in batches.removed {
      for session in sessions.sessions { reports[session]?.add(batch: name, files) }
    }
    remains.add(batches.remains)
    failures += batches.failures
    if let stop = batches.stop as? Cancelled { throw stop }
    if let stop = batches.stop { failures.append(stop) }
  }
}

/// The removals of one run of `delete` in a session, for an audit log.
package struct DeletionReport: Sendable {
  package let tombstone: Tombstone
  /// The removed published files.
  package fileprivate(set) var session = RemovedSession()
  /// The removed batches, as `done/NAME`.
  package private(set) var batches: [String] = []
  private var batchFiles = FileCount()
  private let isDryRun: Bool

  init(_ tombstone: Tombstone, isDryRun: Bool) {
    self.tombstone = tombstone
    self.isDryRun = isDryRun
  }

  fileprivate mutating func add(batch: String, _ files: FileCount) {
    batches.append(batch)
    batchFiles += files
  }

  /// The number of removed files, or objects, and their size.
  package var files: FileCount {
    var sum = session.files
    sum += batchFiles
    return sum
  }

  /// One line of JSON. That of a dry run has no time and no reason of a deletion.
  package func json(_ remains: RemainingBatches) -> String {
    let head = isDryRun ? ["session": .string("\(tombstone.session)"), "dryRun": .bool(true)] : tombstone.members
    return JSONValue.object(
      head.merging([
        "segments": .number(session.segments), "files": .number(files.files), "bytes": .number(files.bytes),
        "batches": .array(batches.map { .string($0) }), "held": .array(remains.held.map { .string($0) }),
        "unidentified": .array(remains.unidentified.map { .string($0) }),
      ]) { $1 }
    ).line
  }
}

/// Batches that a run of `delete` left, and that may have pictures of a deleted session.
package struct RemainingBatches: Sendable, Equatable {
  /// Batches that a worker holds. It refuses them, or their deleted sessions.
  package internal(set) var held: [String] = []
  /// Batches that may have more sessions than they tell.
  package private(set) var unidentified: [String] = []
  /// The fault of each of these and the remedy, for people.
  package private(set) var remarks: [String: String] = [:]
  /// Unidentified batches whose names say other sessions than deleted ones.
  package private(set) var namedOtherwise: [String: SessionID] = [:]
  /// Batches of other sessions by their names, which have the ID of a deleted session in them.
  package private(set) var alike: [String: SessionID] = [:]

  package init() {}

  mutating func add(_ others: RemainingBatches) {
    held += others.held
    unidentified += others.unidentified
    remarks.merge(others.remarks) { $1 }
    namedOtherwise.merge(others.namedOtherwise) { $1 }
    alike.merge(others.alike) { $1 }
  }

  mutating func add(alike path: String, _ session: SessionID) { alike[path] = session }

  mutating func add(unidentified path: String, _ remark: String) {
    unidentified.append(path)
    remarks[path] = remark
  }

  /// - Parameter found: the sessions by the batch's name alone.
  mutating func add(unreadable path: String, _ found: NamedSessions) {
    unidentified.append(path)
    namedOtherwise[path] = found.sessions.first
    if found.sessions.isEmpty {
      remarks[path] = "cannot be read, and its name says no session; look at it, and remove it yourself"
    }
  }
}
