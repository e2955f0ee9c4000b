// Removes the batches of deleted sessions from an object store. The tombstones are there before: from then on a worker refuses
// these batches.

import FileSystem
import FrameBatches
import Sessions
import WorkQueues

struct ObjectBatchRemoval {
  private let batches: ObjectBatchRepository
  private let staging: Staging
  private let identifier: BatchIdentifier
  private let isDeleted: (SessionID) throws -> Bool

  private var objects: any ObjectClient { batches.objects }

  /// - Parameters:
  ///   - staging: the place for fetched batches.
  ///   - isDeleted: whether a session was deleted, in this run or in an earlier one.
  init(
    _ batches: ObjectBatchRepository, staging: Staging, _ identifier: BatchIdentifier,
    isDeleted: @escaping (SessionID) throws -> Bool
  ) {
    self.batches = batches
    self.staging = staging
    self.identifier = identifier
    self.isDeleted = isDeleted
  }

  /// Removes the batches: those that wait if all of their sessions were deleted, finished ones if any was.
  ///
  /// - Throws: ``Cancelled``; errors of the store.
  func run(_ deletion: inout Deletion) throws {
    try forEach(in: ObjectBatchRepository.incoming, &deletion) { object, name, deletion in
      guard let found = try sessions(of: object, named: name, &deletion),
        try found.sessions.allSatisfy(isDeleted)
      else { return }
      // A queue may name the batch: its worker finds the receipt.
      try batches.writeReceipt(name, object.tag, .refused, ["cause": .string("its sessions were deleted")])
      add(object, found, &deletion)
    }
    try forEach(in: "done/", &deletion) { object, name, deletion in
      guard let found = try sessions(of: object, named: name, &deletion),
        try found.sessions.contains(where: isDeleted)
      else { return }
      try objects.delete(object.key, nil)
      add(object, found, &deletion)
    }
    try forEach(in: "quarantine/", &deletion) { object, name, deletion in
      guard !name.hasSuffix(Quarantine.reasonEnding) else { return try removeReason(object, of: name) }
      let reason = object.key + Quarantine.reasonEnding
      let former = try formerName(inReason: reason) ?? name
      guard let found = try sessions(of: object, named: former, &deletion),
        try found.sessions.contains(where: isDeleted)
      else { return }
      // After a crash between the two, the one that is left tells the session.
      for key in found.isCertain ? [reason, object.key] : [object.key, reason] { try objects.delete(key, nil) }
      add(object, found, &deletion)
    }
  }

  private func forEach(
    in prefix: String, _ deletion: inout Deletion,
    _ body: (ObjectInfo, _ name: String, inout Deletion) throws -> Void
  ) throws {
    var last: String?
    while true {
      let page = try objects.list(prefix, after: last)
      guard let end = page.last else { return }
      last = end.key
      for object in page where !object.key.hasSuffix("/") {
        if identifier.isCancelled() { throw Cancelled() }
        do {
          try body(object, String(object.key.dropFirst(prefix.count)), &deletion)
        } catch let failure as ObjectStoreError where failure.isOfOneObject {
          // An archived object, or a key that the store refuses: it does not stop the others.
          deletion.failures.append(failure)
          deletion.remains.add(unidentified: object.key, "cannot be read; look at it, and remove it yourself")
        }
      }
    }
  }

  /// Returns the sessions of a batch; nil if it cannot be told whether a deleted one is among them, or it is gone.
  private func sessions(
    of object: ObjectInfo, named name: String, _ deletion: inout Deletion
  ) throws -> NamedSessions? {
    let copy = Staging.Scratch(in: staging)
    defer { copy.remove() }
    let component = lastComponent(of: name)
    var found = NamedSessions(byNameOf: component)
    // Other keys are no batches, and no file can have their names.
    if batches.isPlain(name) {
      try DurableFile.makeDirectories(copy.path)
      let path = copy.path + "/" + lastComponent(of: object.key)
      do {
        guard try objects.download(object.key, to: path, limit: identifier.maximumBytes) != nil else { return nil }
        found = try identifier.sessions(of: path, named: component)
      } catch is ObjectTooLarge {
        // Its name may tell.
      }
    }
    if try found.isComplete || found.sessions.contains(where: isDeleted) { return found }
    deletion.remains.add(unreadable: object.key, found)
    return nil
  }

  private func add(_ object: ObjectInfo, _ found: NamedSessions, _ deletion: inout Deletion) {
    var files = FileCount()
    files.add(fileOf: object.size)
    deletion.add(batch: object.key, of: found, files)
  }

  /// Removes a reason whose batch an interrupted run has removed.
  private func removeReason(_ object: ObjectInfo, of name: String) throws {
    let batch = String(object.key.dropLast(Quarantine.reasonEnding.count))
    guard let former = try formerName(inReason: object.key),
      let session = BatchReader.session(ofBatchNamed: former), try isDeleted(session),
      try objects.head(batch) == nil
    else { return }
    try objects.delete(object.key, nil)
  }

  /// Returns the name that a batch had before its quarantine; nil if no reason tells it.
  private func formerName(inReason key: String) throws -> String? {
    do {
      return try objects.get(key, limit: 1 << 20).flatMap { BadBatch.reason(in: $0.bytes) }?["object"]?.string
    } catch is ObjectTooLarge {
      return nil
    }
  }
}
