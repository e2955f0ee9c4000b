import Synchronization

@testable import FileSystem
@testable import Sessions

/// A client of a ``MemoryObjects`` that counts requests by their kind.
package final class CountingObjects: ObjectClient {
  package enum Kind { case get, head, put, delete, list }

  private let objects: MemoryObjects
  private let made = Mutex<[(kind: Kind, key: String)]>([])

  package init(_ objects: MemoryObjects) { self.objects = objects }

  /// Returns the keys of the requests of a kind since the last call of ``reset()``.
  package func keys(_ kind: Kind) -> [String] { made.withLock { $0.filter { $0.kind == kind }.map(\.key) } }

  package func reset() { made.withLock { $0 = [] } }

  private func note(_ kind: Kind, _ key: String) { made.withLock { $0.append((kind, key)) } }

  package func get(_ key: String, limit: Int) throws -> StoredObject? {
    note(.get, key)
    return try objects.get(key, limit: limit)
  }

  package func download(_ key: String, to path: String, limit: Int) throws -> ObjectTag? {
    note(.get, key)
    return try objects.download(key, to: path, limit: limit)
  }

  package func head(_ key: String) throws -> ObjectInfo? {
    note(.head, key)
    return try objects.head(key)
  }

  package func put(_ key: String, _ body: ObjectBody, _ kind: ObjectKind, when condition: PutCondition) throws
    -> ObjectTag?
  {
    note(.put, key)
    return try objects.put(key, body, kind, when: condition)
  }

  package func copy(_ key: String, _ tag: ObjectTag, to target: String) throws -> Bool {
    note(.put, target)
    return try objects.copy(key, tag, to: target)
  }

  package func delete(_ key: String, _ tag: ObjectTag?) throws {
    note(.delete, key)
    try objects.delete(key, tag)
  }

  package func list(_ prefix: String, after key: String?) throws -> [ObjectInfo] {
    note(.list, prefix)
    return try objects.list(prefix, after: key)
  }
}
