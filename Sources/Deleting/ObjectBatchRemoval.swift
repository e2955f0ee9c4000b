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
  private let isDryRun: Bool
  private let isDeleted: (SessionID) throws -> Bool

  private var objects: any ObjectClient { batches.objects }

  /// - Parameters:
  ///   - staging: the place for fetched batches.
  ///   - isDryRun: whether to find the batches, and to change nothing.
  ///   - isDeleted: whether a session was deleted, in this run or in an earlier one.
  init(
    _ batches: ObjectBatchRepository, staging: Staging, _ identifier: BatchIdentifier, isDryRun: Bool,
    isDeleted: @escaping (SessionID) throws -> Bool
  ) {
    self.batches = batches
    self.staging = staging
    self.identifier = identifier
    self.isDryRun = isDryRun
    self.isDeleted = isDeleted
  }

  /// Removes the batches: those that wait if all of their sessions were deleted, finished ones if any was. An error of the store
  /// stops it.
  func removeAll() -> BatchRemovals {
    let prefixes = [
      (ObjectBatchRepository.incoming, removeWaiting), ("done/", removeKept), ("quarantine/", removeQuarantined),
    ]
    return .of(prefixes, stopsAtFailure: true) { prefix, remove in removeAll(in: prefix, by: remove) }
  }

  private func removeAll(
    in prefix: String, by remove: (ObjectInfo, _ name: String) throws -> BatchRemovals
  ) -> BatchRemovals {
    var last: String?
    let pages = AnyIterator<Result<[ObjectInfo], any Error>> {
      let page = Result { try objects.list(prefix, after: last) }
      last = (try? page.get())?.last?.key
      if case .success(let listed) = page, listed.isEmpty { return nil }
      return page
    }
    return .of(pages, stopsAtFailure: true) { page in
      let batches = try page.get().filter { !$0.key.hasSuffix("/") }
      return .of(batches, stopsAtFailure: true) { object in
        try identifier.cancellation.check()
        do {
          return try remove(object, String(object.key.dropFirst(prefix.count)))
        } catch let failure as ObjectStoreError where failure.isOfOneObject {
          // An archived object, or a key that the store refuses: it does not stop the others.
          return BatchRemovals(
            unidentified: object.key, "cannot be read; look at it, and remove it yourself", failure)
        }
      }
    }
  }

  private func removeWaiting(_ object: ObjectInfo, named name: String) throws -> BatchRemovals {
    switch try sessions(of: object, named: name) {
    case .stays(let reason): return reason
    case .found(let found):
      guard try found.sessions.allSatisfy(isDeleted) else { return identifier.remains(object.key, found) }
      // A queue may name the batch: its worker finds the receipt.
      if !isDryRun {
        try batches.writeReceipt(name, object.tag, .refused, ["cause": .string("its sessions were deleted")])
      }
      return removed(object, found)
    }
  }

  private func removeKept(_ object: ObjectInfo, named name: String) throws -> BatchRemovals {
    switch try sessions(of: object, named: name) {
    case .stays(let reason): return reason
    case .found(let found):
      guard try found.sessions.contains(where: isDeleted) else { return identifier.remains(object.key, found) }
      try delete(object.key)
      return removed(object, found)
    }
  }

  private func removeQuarantined(_ object: ObjectInfo, named name: String) throws -> BatchRemovals {
    guard !name.hasSuffix(Quarantine.reasonEnding) else {
      try removeReason(object, of: name)
      return BatchRemovals()
    }
    let reason = object.key + Quarantine.reasonEnding
    switch try sessions(of: object, named: try formerName(inReason: reason) ?? name) {
    case .stays(let reason): return reason
    case .found(let found):
      guard try found.sessions.contains(where: isDeleted) else { return identifier.remains(object.key, found) }
      // After a crash between the two, the one that is left tells the session.
      for key in found.isByContent ? [reason, object.key] : [object.key, reason] { try delete(key) }
      return removed(object, found)
    }
  }

  /// Returns the sessions of a batch, unless it cannot be told whether a deleted one is among them, or it is gone.
  private func sessions(of object: ObjectInfo, named name: String) throws -> BatchFinding {
    let copy = Staging.Scratch(in: staging)
    defer { copy.remove() }
    var found = identifier.sessions(byNameOf: name)
    // Other keys are no batches, and no file can have their names.
    if batches.isPlain(name) {
      try copy.make()
      let path = copy.path + "/" + lastComponent(of: object.key)
      do {
        guard try objects.download(object.key, to: path, limit: identifier.maximumBytes) != nil else {
          return .stays(BatchRemovals())
        }
        found = try identifier.sessions(of: path, named: name)
      } catch is ObjectTooLarge {
        // Its name may tell.
      }
    }
    if try found.isComplete || found.sessions.contains(where: isDeleted) { return .found(found) }
    return .stays(BatchRemovals(unreadable: object.key, found))
  }

  private func removed(_ object: ObjectInfo, _ found: NamedSessions) -> BatchRemovals {
    var files = FileCount()
    files.add(fileOf: object.size)
    return BatchRemovals(removed: object.key, found, files)
  }

  /// Removes a reason whose batch an interrupted run has removed.
  private func removeReason(_ object: ObjectInfo, of name: String) throws {
    let batch = String(object.key.dropLast(Quarantine.reasonEnding.count))
    guard let former = try formerName(inReason: object.key),
      try identifier.sessions(byNameOf: former).sessions.contains(where: isDeleted),
      try objects.head(batch) == nil
    else { return }
    try delete(object.key)
  }

  private func delete(_ key: String) throws {
    if !isDryRun { try objects.delete(key, nil) }
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
