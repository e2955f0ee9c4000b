// Deletion in an object store. The tombstone of a session is its head: the object that every publication replaces on the condition
// that it is unchanged. So a publication precedes the tombstone, or fails. Objects that a publisher writes later are invisible;
// it finds the tombstone afterwards and removes them, or the next worker that gets its batch does.

import Encoding
import FileSystem
import FrameBatches
import JSON

extension ObjectSession {
  /// The format of a head after `delete --undelete`: nothing is published.
  static let undeletedFormat = "session-undeleted/1"

  /// Returns the head of a session of which nothing is published, with a generation of its own.
  ///
  /// - Parameters:
  ///   - isRemoving: whether objects of it may still be there, which are to be removed.
  ///   - tombstoneReason: the reason of the tombstone that follows; nil for none.
  static func undeletedHead(isRemoving: Bool = false, tombstoneReason: String? = nil) -> [UInt8] {
    var members: [String: JSONValue] = [
      "format": .string(undeletedFormat), "generation": .string("\(WorkerID())"),
    ]
    if isRemoving { members["removing"] = .bool(true) }
    members["tombstoneReason"] = tombstoneReason.map { .string($0) }
    return JSONValue.object(members).bytes() + [UInt8(ascii: "\n")]
  }

  /// Returns the tombstone of the session; nil if it was not deleted.
  func tombstone() throws -> Tombstone? {
    try tombstone(in: objects.get(headKey, limit: Self.indexBytes))
  }

  /// - Returns: nil for a head that is no tombstone.
  private func tombstone(in head: StoredObject?) throws -> Tombstone? {
    guard let head, let json = try? JSONParser.parse(head.bytes), json.object?["format"]?.string == Tombstone.format
    else { return nil }
    do {
      return try Tombstone(json, of: id)
    } catch {
      throw DamagedOutput(path: name + headKey, cause: "\(error)")
    }
  }

  /// Writes the tombstone, whatever the head is. One that is there stays.
  ///
  /// - Returns: the tombstone that is there now.
  /// - Throws: ``Cancelled``.
  func add(_ tombstone: Tombstone, cancellation: Cancellation) throws -> Tombstone {
    try SegmentWriteConflict.retrying(cancellation) {
      let there = try objects.get(headKey, limit: Self.indexBytes)
      if let known = try self.tombstone(in: there) { return known }
      let condition = PutCondition.unchanged(since: there?.tag)
      return try objects.put(headKey, .bytes(tombstone.bytes), .json, when: condition).map { _ in tombstone }
    }
  }

  /// Allows a deleted session again. The head stays, and gets a generation: a publisher that read the session before its deletion
  /// must not take the head for the one that it knows.
  ///
  /// - Returns: whether there was a tombstone.
  /// - Throws: ``BadSession`` if the removal is not finished; ``Cancelled``.
  func removeTombstone(cancellation: Cancellation) throws -> Bool {
    let text = Self.undeletedHead()
    while true {
      try cancellation.check()
      guard let there = try objects.get(headKey, limit: Self.indexBytes), try tombstone(in: there) != nil else {
        return false
      }
      guard try objects.list(key(""), after: nil).isEmpty, try pageKeys().isEmpty else {
        throw BadSession(
          name + key(""), "its objects are not all removed", advice: "run delete again, then delete --undelete")
      }
      if try objects.putOwn(headKey, text, .json, when: .matching(there.tag)) != nil { return true }
    }
  }

  /// Removes all objects of a session that has a tombstone.
  ///
  /// - Throws: ``Cancelled``.
  func removeObjects(cancellation: Cancellation = .never) throws -> RemovedSession {
    try removeObjects(unlessChanged: false, while: { try tombstone() != nil }, cancellation)
  }

  /// Removes all objects of a session.
  ///
  /// - Parameters:
  ///   - unlessChanged: whether an object that has changed since it was listed stays, if the store can tell.
  ///   - isGone: whether the objects do not belong to a new session of this ID.
  func removeObjects(
    unlessChanged: Bool, while isGone: () throws -> Bool, _ cancellation: Cancellation
  ) throws -> RemovedSession {
    var removed = RemovedSession()
    var last: String?
    while true {
      let page = try objects.list(key(""), after: last)
      // Listed objects of a session that is allowed again belong to it.
      guard let end = page.last, try isGone() else { break }
      // Without these files the session is gone for readers.
      if last == nil { for file in ViewList.all.flatMap(\.entryPoints) { try objects.delete(key(file), nil) } }
      for object in page {
        try cancellation.check()
        try objects.delete(object.key, unlessChanged ? object.tag : nil)
        add(object, to: &removed)
      }
      last = end.key
    }
    if try isGone() {
      try SupersededObjects(of: self).remove()
      try EndRequestObjects(objects: objects).remove(id)
      try ReplacedObjects(of: self).removeLists()
    }
    for page in try pageKeys() {
      guard try isGone() else { break }
      try objects.delete(page.key, nil)
      removed.files.add(fileOf: page.size)
    }
    return removed
  }

  /// Counts the objects that ``removeObjects(cancellation:)`` would remove.
  func countObjects(cancellation: Cancellation) throws -> RemovedSession {
    var count = RemovedSession()
    var last: String?
    while true {
      try cancellation.check()
      let page = try objects.list(key(""), after: last)
      guard let end = page.last else { break }
      for object in page { add(object, to: &count) }
      last = end.key
    }
    for page in try pageKeys() { count.files.add(fileOf: page.size) }
    return count
  }

  private func add(_ object: ObjectInfo, to count: inout RemovedSession) {
    count.files.add(fileOf: object.size)
    if SegmentName.start(ofManifest: String(object.key.dropFirst(key("").count))) != nil { count.segments += 1 }
  }

  /// Runs the work of a publisher. If it finds the session deleted, or an object of it missing because it is being deleted, objects
  /// of the publisher may have come after the removal: they are removed. If it finds an object missing because retention has just
  /// removed it, the work is done again.
  ///
  /// - Parameter body: reads the index each time.
  /// - Throws: ``SessionDeleted``.
  func removingObjectsIfDeleted<R: ~Copyable>(_ body: () throws -> R) throws -> R {
    var failedAt: ObjectTag?
    var attempt = 0
    while true {
      do {
        return try body()
      } catch let error where error is SessionDeleted || error is DamagedOutput {
        if let tombstone = try tombstone() {
          _ = try removeObjects()
          throw SessionDeleted(tombstone)
        }
        // Retention changes the index before it removes what the older one lists. An unchanged index lists a damaged object.
        let tag = try objects.head(headKey)?.tag
        guard error is DamagedOutput, let tag, tag != failedAt, attempt < 20 else { throw error }
        failedAt = tag
        attempt += 1
      }
    }
  }

  /// Pages of the index.
  func pageKeys() throws -> [ObjectInfo] {
    var pages: [ObjectInfo] = []
    var last: String?
    while true {
      let page = try objects.list(indexKey(""), after: last)
      guard let end = page.last else { return pages }
      pages += page.filter { $0.key != headKey }
      last = end.key
    }
  }
}

/// Deletes sessions of an object store.
package struct ObjectDeletion {
  private let objects: any ObjectClient
  private let name: String
  private let cancellation: Cancellation

  /// - Parameter name: the store's name in messages.
  package init(_ objects: any ObjectClient, name: String, cancellation: Cancellation = .never) {
    self.objects = objects
    self.name = name
    self.cancellation = cancellation
  }

  private func session(_ id: SessionID) -> ObjectSession { ObjectSession(id: id, objects: objects, name: name) }

  package func tombstone(of id: SessionID) throws -> Tombstone? { try session(id).tombstone() }

  /// - Returns: the tombstone that is there now.
  package func add(_ tombstone: Tombstone) throws -> Tombstone {
    try session(tombstone.session).add(tombstone, cancellation: cancellation)
  }

  /// Removes the objects of a session that has a tombstone.
  package func remove(_ id: SessionID) throws -> RemovedSession {
    try session(id).removeObjects(cancellation: cancellation)
  }

  /// Counts the objects that ``remove(_:)`` would remove.
  package func count(_ id: SessionID) throws -> RemovedSession {
    try session(id).countObjects(cancellation: cancellation)
  }

  /// - Returns: whether there was a tombstone.
  package func removeTombstone(of id: SessionID) throws -> Bool {
    try session(id).removeTombstone(cancellation: cancellation)
  }
}
