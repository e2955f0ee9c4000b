// One run of `delete`: first all tombstones, durable; then the sessions; then their batches. Every step can be repeated, so a second
// run finishes an interrupted one.

import FileSystem
import FrameBatches
import Sessions

/// The place of sessions and of their batches.
package protocol DeletionPlace {
  /// Its name in messages.
  var name: String { get }
  /// - Returns: the tombstone that is there now.
  func add(_ tombstone: Tombstone) throws -> Tombstone
  /// - Returns: whether there was a tombstone.
  func removeTombstone(of session: SessionID) throws -> Bool
  /// Removes the published files of a session that has a tombstone.
  func remove(_ session: SessionID) throws -> RemovedSession
  /// Removes the batches of deleted sessions.
  func removeBatches(of run: DeletionRun) throws
}

package final class DeletionRun {
  private let place: any DeletionPlace
  package internal(set) var reports: [SessionID: DeletionReport] = [:]
  package internal(set) var remains = RemainingBatches()
  package internal(set) var failures: [any Error] = []

  package init(_ place: any DeletionPlace) { self.place = place }

  /// Deletes sessions. A session that cannot be removed now does not stop the others.
  ///
  /// - Throws: ``Cancelled``; a failure of a tombstone: then nothing is removed.
  package func delete(_ tombstones: [Tombstone]) throws {
    for tombstone in tombstones { reports[tombstone.session] = DeletionReport(try place.add(tombstone)) }
    for tombstone in tombstones {
      try attempt { self.reports[tombstone.session]?.session = try self.place.remove(tombstone.session) }
    }
    try attempt { try self.place.removeBatches(of: self) }
  }

  func attempt(_ body: () throws -> Void) throws {
    do {
      try body()
    } catch let stop as Cancelled {
      throw stop
    } catch {
      failures.append(error)
    }
  }
}

/// An output directory, and the spool of its batches.
package struct DirectoryDeletionPlace: DeletionPlace {
  private let output: String
  private let spool: Spool?
  private let identifier: BatchIdentifier
  private let waitMs: Int

  package var name: String { output }

  /// - Parameter waitMs: milliseconds to wait for batches that workers hold.
  package init(output: String, spool: Spool?, _ identifier: BatchIdentifier, waitMs: Int = 60_000) {
    self.output = output
    self.spool = spool
    self.identifier = identifier
    self.waitMs = waitMs
  }

  private var tombstones: SessionTombstones { SessionTombstones(output: output) }

  package func add(_ tombstone: Tombstone) throws -> Tombstone { try tombstones.add(tombstone) }

  package func removeTombstone(of session: SessionID) throws -> Bool { try tombstones.remove(of: session) }

  package func remove(_ session: SessionID) throws -> RemovedSession {
    try SessionRemoval(output: output, isCancelled: identifier.isCancelled).remove(session)
  }

  package func removeBatches(of run: DeletionRun) throws {
    // Workers that died with segments of the session.
    run.failures += try Staging.removeLeftovers(in: output)
    for other in try Staging.ofOtherHosts(in: output) {
      run.remains.add(
        unidentified: other, "unpublished files of a worker of another host; prune removes them when it is dead")
    }
    guard let spool else { return }
    try SpoolDeletion(spool, run, deleted: tombstones.sessions(), identifier, waitMs: waitMs).run()
  }
}

/// An object store.
package struct StoreDeletionPlace: DeletionPlace {
  package let name: String
  private let objects: any ObjectClient
  private let staging: Staging
  private let identifier: BatchIdentifier

  /// - Parameters:
  ///   - name: the store's name in messages.
  ///   - staging: the place for fetched batches.
  package init(_ objects: any ObjectClient, name: String, staging: Staging, _ identifier: BatchIdentifier) {
    self.name = name
    self.objects = objects
    self.staging = staging
    self.identifier = identifier
  }

  private var deletion: ObjectDeletion { ObjectDeletion(objects, name: name, isCancelled: identifier.isCancelled) }

  package func add(_ tombstone: Tombstone) throws -> Tombstone { try deletion.add(tombstone) }

  package func removeTombstone(of session: SessionID) throws -> Bool { try deletion.removeTombstone(of: session) }

  package func remove(_ session: SessionID) throws -> RemovedSession { try deletion.remove(session) }

  package func removeBatches(of run: DeletionRun) throws {
    defer { staging.remove() }
    try ObjectBatchDeletion(ObjectBatchRepository(objects, name: name), run, staging: staging, identifier) {
      try run.reports[$0] != nil || deletion.tombstone(of: $0) != nil
    }.run()
  }
}
