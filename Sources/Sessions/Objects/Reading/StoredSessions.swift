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

  /// Returns the place of a session's objects, for messages.
  package func place(of id: SessionID) -> String { session(id).place }

  /// Returns the sessions that have an index or any object, in order; also deleted ones.
  ///
  /// - Parameter prefixes: of the keys that are listed.
  /// - Throws: ``Failure`` if the store lists keys out of order, or more sessions than the maximum.
  package func ids(below prefixes: [String] = ["index/", "output/"]) throws -> [SessionID] {
    var found: Set<SessionID> = []
    for prefix in prefixes { try addSessions(below: prefix, to: &found) }
    return found.sorted { $0.description.utf8.lexicographicallyPrecedes($1.description.utf8) }
  }

  private func addSessions(below prefix: String, to found: inout Set<SessionID>) throws {
    var walk = walk(prefix)
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

extension StoredSessions {
  /// Returns a walk over the keys below a prefix, in their order.
  ///
  /// - Parameter key: the walk begins behind it; nil for the beginning.
  package func walk(_ prefix: String, after key: String? = nil) -> ListWalk {
    ListWalk(prefix, of: objects, name: name, after: key)
  }
}
