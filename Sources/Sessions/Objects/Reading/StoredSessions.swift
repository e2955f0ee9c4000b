// The sessions of an object store, for programs that read them. All bounds are far above what workers write: a store may answer with
// anything.

import Encoding
import FileSystem
import FrameBatches

/// The sessions of an object store, for readers.
package struct StoredSessions: Sendable {
  let objects: any ObjectClient
  /// The store's name in messages.
  let name: String

  /// Maximum number of sessions that are listed, and of objects that are of no session.
  private static let (maximumCount, maximumOthers) = (1_000_000, 100_000)

  /// - Parameter name: the store's name in messages, which keys follow.
  package init(_ objects: any ObjectClient, name: String) { (self.objects, self.name) = (objects, name) }

  func session(_ id: SessionID) -> ObjectSession { ObjectSession(id: id, objects: objects, name: name) }

  /// Returns the sessions that have an index or any object, in order; also deleted ones.
  ///
  /// - Throws: ``Failure`` if the store lists keys out of order, or more sessions than the maximum.
  package func ids() throws -> [SessionID] {
    var found: Set<SessionID> = []
    for prefix in ["index/", "output/"] { try addSessions(below: prefix, to: &found) }
    return found.sorted { $0.description.utf8.lexicographicallyPrecedes($1.description.utf8) }
  }

  private func addSessions(below prefix: String, to found: inout Set<SessionID>) throws {
    var walk = ListWalk(prefix, of: self)
    var others = 0
    while let page = try walk.next() {
      for object in page {
        let path = object.key.dropFirst(prefix.count)
        if let slash = path.firstIndex(of: "/"), let id = SessionID(String(path[..<slash])) {
          found.insert(id)
          // The other objects of the last session need no list.
          walk.skip(folder: prefix + id.description)
        } else {
          others += 1
        }
      }
      guard found.count <= Self.maximumCount, others <= Self.maximumOthers else {
        throw Failure(
          .environment, "list", name + prefix, "more than \(Self.maximumCount) sessions, or other objects",
          advice: "name sessions")
      }
    }
  }
}

/// A walk over the keys below a prefix, in their order.
struct ListWalk {
  private let prefix: String
  private let store: StoredSessions
  private var last: String?

  init(_ prefix: String, of store: StoredSessions) { (self.prefix, self.store) = (prefix, store) }

  /// Returns the next objects; nil at the end.
  ///
  /// - Throws: ``Failure`` for keys that are out of order: such a list might never end.
  mutating func next() throws -> [ObjectInfo]? {
    let page = try store.objects.list(prefix, after: last)
    guard !page.isEmpty else { return nil }
    var before = last
    for object in page {
      guard object.key.utf8.starts(with: prefix.utf8),
        before.map({ $0.utf8.lexicographicallyPrecedes(object.key.utf8) }) ?? true
      else {
        throw Failure(
          .environment, "list", store.name + prefix, "the store lists keys out of order",
          advice: "check that the endpoint is an S3 store")
      }
      before = object.key
    }
    last = before
    return page
  }

  /// Leaves out the keys below a folder. Keys behind it stay.
  mutating func skip(folder: String) {
    // 0 is the character behind a slash.
    if let key = last, key.utf8.starts(with: (folder + "/").utf8) { last = folder + "0" }
  }
}
