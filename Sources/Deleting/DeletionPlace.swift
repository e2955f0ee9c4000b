// One run of `delete`: first all tombstones, durable; then the sessions; then their batches. Every step can be repeated, so a second
// run finishes an interrupted one.

import FileSystem
import FrameBatches
import Sessions
import WorkQueues

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
  /// Removes the batches of deleted sessions, and adds what it removed and what it left.
  ///
  /// - Throws: ``Cancelled``; a failure that stops it.
  func removeBatches(_ deletion: inout Deletion) throws
}

extension DeletionPlace {
  /// Deletes sessions. A session that cannot be removed now does not stop the others.
  package func delete(_ tombstones: [Tombstone]) -> Deletion {
    var deletion = Deletion()
    deletion.end = Result {
      for tombstone in tombstones { deletion.begin(try add(tombstone)) }
      for tombstone in tombstones {
        try deletion.attempt { $0.add(try remove(tombstone.session), of: tombstone.session) }
      }
      try deletion.attempt(removeBatches)
    }
    return deletion
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

  package func removeBatches(_ deletion: inout Deletion) throws {
    // Workers that died with segments of the session.
    deletion.failures += try Staging.removeLeftovers(in: output)
    for other in try Staging.ofOtherHosts(in: output) {
      deletion.remains.add(
        unidentified: other, "unpublished files of a worker of another host; prune removes them when it is dead")
    }
    guard let spool else { return }
    try SpoolBatchRemoval(spool, deleted: tombstones.sessions(), identifier, waitMs: waitMs).run(&deletion)
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

  private var sessions: ObjectDeletion { ObjectDeletion(objects, name: name, isCancelled: identifier.isCancelled) }

  package func add(_ tombstone: Tombstone) throws -> Tombstone { try sessions.add(tombstone) }

  package func removeTombstone(of session: SessionID) throws -> Bool { try sessions.removeTombstone(of: session) }

  package func remove(_ session: SessionID) throws -> RemovedSession { try sessions.remove(session) }

  package func removeBatches(_ deletion: inout Deletion) throws {
    defer { staging.remove() }
    let begun = Set(deletion.reports.keys)
    try ObjectBatchRemoval(ObjectBatchRepository(objects, name: name), staging: staging, identifier) {
      try begun.contains($0) || sessions.tombstone(of: $0) != nil
    }.run(&deletion)
  }
}
