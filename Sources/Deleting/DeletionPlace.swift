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
  /// The name of the store into which a worker brings the sessions of the place; nil if they stay.
  var uploadsTo: String? { get }
  /// - Returns: the tombstone that is there now.
  func add(_ tombstone: Tombstone) throws -> Tombstone
  /// - Returns: whether there was a tombstone.
  func removeTombstone(of session: SessionID) throws -> Bool
  /// Removes the published files of a session that has a tombstone.
  func remove(_ session: SessionID) throws -> RemovedSession
  /// Counts the published files that ``remove(_:)`` would remove.
  func published(_ session: SessionID) throws -> RemovedSession
  /// Removes the batches of deleted sessions.
  ///
  /// - Parameters:
  ///   - begun: the sessions that this run deletes.
  ///   - isDryRun: whether to find the batches, and to change nothing.
  func removeBatches(of begun: Set<SessionID>, isDryRun: Bool) -> BatchRemovals
}

extension DeletionPlace {
  /// Deletes sessions. A session that cannot be removed now does not stop the others.
  ///
  /// - Parameter isDryRun: whether to find what would be removed, and to change nothing.
  package func delete(_ tombstones: [Tombstone], isDryRun: Bool = false) -> Deletion {
    var deletion = Deletion(isDryRun: isDryRun)
    deletion.end = Result {
      for tombstone in tombstones { deletion.begin(isDryRun ? tombstone : try add(tombstone)) }
      for session in tombstones.map(\.session) {
        do {
          deletion.add(isDryRun ? try published(session) : try remove(session), of: session)
        } catch let failure where !(failure is Cancelled) {
          deletion.add(failure: failure)
        }
      }
      try deletion.add(removeBatches(of: Set(deletion.reports.keys), isDryRun: isDryRun))
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

  package var uploadsTo: String? { (try? UploadFiles(output: output).readState())??.store }

  /// - Parameter waitMs: milliseconds to wait for batches that workers hold.
  package init(output: String, spool: Spool?, _ identifier: BatchIdentifier, waitMs: Int = 60_000) {
    self.output = output
    self.spool = spool
    self.identifier = identifier
    self.waitMs = waitMs
  }

  private var tombstones: SessionTombstones { SessionTombstones(output: output) }

  package func add(_ tombstone: Tombstone) throws -> Tombstone {
    // First the request: a crash behind the tombstone loses no deletion in the store.
    try UploadFiles(output: output).addDeletion(of: tombstone.session)
    return try tombstones.add(tombstone)
  }

  package func removeTombstone(of session: SessionID) throws -> Bool {
    try UploadFiles(output: output).removeDeletion(of: session)
    return try tombstones.remove(of: session)
  }

  package func remove(_ session: SessionID) throws -> RemovedSession {
    try SessionRemoval(output: output, cancellation: identifier.cancellation).remove(session)
  }

  package func published(_ session: SessionID) throws -> RemovedSession {
    try SessionRemoval(output: output, cancellation: identifier.cancellation).count(session)
  }

  package func removeBatches(of begun: Set<SessionID>, isDryRun: Bool) -> BatchRemovals {
    let steps: [() throws -> BatchRemovals] =
      (isDryRun ? [] : [removeLeftovers])
      + [findLeftoversOfOtherHosts, { try removeBatchesOfSpool(of: begun, isDryRun: isDryRun) }]
    return .of(steps, stopsAtFailure: true) { try $0() }
  }

  /// Removes unpublished segments of workers that died.
  private func removeLeftovers() throws -> BatchRemovals {
    BatchRemovals(failures: try Staging.removeLeftovers(in: output))
  }

  private func findLeftoversOfOtherHosts() throws -> BatchRemovals {
    .of(try Staging.ofOtherHosts(in: output)) { other in
      BatchRemovals(
        unidentified: other, "unpublished files of a worker of another host; prune removes them when it is dead")
    }
  }

  private func removeBatchesOfSpool(of begun: Set<SessionID>, isDryRun: Bool) throws -> BatchRemovals {
    guard let spool else { return BatchRemovals() }
    return try SpoolBatchRemoval(
      spool, deleted: tombstones.sessions().union(begun), begun: begun, identifier, waitMs: waitMs, isDryRun: isDryRun
    ).removeAll()
  }
}

/// An object store.
package struct StoreDeletionPlace: DeletionPlace {
  package let name: String
  package var uploadsTo: String? { nil }
  private let objects: any ObjectClient
  private let staging: Staging
  private let state: Spool?
  private let identifier: BatchIdentifier

  /// - Parameters:
  ///   - name: the store's name in messages.
  ///   - staging: the place for fetched batches.
  ///   - state: the directory of a worker's pictures that are not in the store yet.
  package init(
    _ objects: any ObjectClient, name: String, staging: Staging, state: Spool? = nil, _ identifier: BatchIdentifier
  ) {
    (self.name, self.state) = (name, state)
    self.objects = objects
    self.staging = staging
    self.identifier = identifier
  }

  private var sessions: ObjectDeletion { ObjectDeletion(objects, name: name, cancellation: identifier.cancellation) }

  package func add(_ tombstone: Tombstone) throws -> Tombstone { try sessions.add(tombstone) }

  package func removeTombstone(of session: SessionID) throws -> Bool { try sessions.removeTombstone(of: session) }

  package func remove(_ session: SessionID) throws -> RemovedSession { try sessions.remove(session) }

  package func published(_ session: SessionID) throws -> RemovedSession { try sessions.count(session) }

  package func removeBatches(of begun: Set<SessionID>, isDryRun: Bool) -> BatchRemovals {
    defer { staging.remove() }
    var removals = BatchRemovals()
    if let state {
      // First, because a worker brings them into the store.
      removals += SpoolBatchRemoval(
        state, deleted: begun, begun: begun, identifier, waitMs: 60_000, isDryRun: isDryRun
      ).removeAll()
    }
    removals += ObjectBatchRemoval(
      ObjectBatchRepository(objects, name: name), staging: staging, identifier, isDryRun: isDryRun
    ) {
      try begun.contains($0) || sessions.tombstone(of: $0) != nil
    }.removeAll()
    return removals
  }
}
