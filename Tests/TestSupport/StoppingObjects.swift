import Synchronization

@testable import FileSystem
@testable import Sessions

/// A client of a ``MemoryObjects`` that dies before a request: from then on every request fails, or a number of them.
package final class StoppingObjects: ObjectClient {
  package struct Stopped: ClassifiedError {
    package var kind: Failure.Kind { .environment }
    package var description: String { "the test stopped the store" }
  }

  private let objects: MemoryObjects
  private let failing: Range<Int>
  private let before: (@Sendable (Int) -> Void)?
  private let made = Mutex(0)

  /// - Parameters:
  ///   - requests: The number of requests that succeed.
  ///   - failures: The number of those that fail then.
  ///   - before: Called before each request, with its number from 0.
  package init(
    _ objects: MemoryObjects, after requests: Int = .max, failures: Int = .max, before: (@Sendable (Int) -> Void)? = nil
  ) {
    self.objects = objects
    self.before = before
    failing = requests..<(failures < .max - requests ? requests + failures : .max)
  }

  /// The number of requests so far.
  package var requests: Int { made.withLock { $0 } }

  private func begin() throws {
    let number = made.withLock { made in
      made += 1
      return made - 1
    }
    before?(number)
    if failing.contains(number) { throw Stopped() }
  }

  package func get(_ key: String, limit: Int) throws -> StoredObject? {
    try begin()
    return try objects.get(key, limit: limit)
  }

  package func download(_ key: String, to path: String, limit: Int) throws -> ObjectTag? {
    try begin()
    return try objects.download(key, to: path, limit: limit)
  }

  package func head(_ key: String) throws -> ObjectInfo? {
    try begin()
    return try objects.head(key)
  }

  package func put(_ key: String, _ body: ObjectBody, _ kind: ObjectKind, when condition: PutCondition) throws
    -> ObjectTag?
  {
    try begin()
    return try objects.put(key, body, kind, when: condition)
  }

  package func copy(_ key: String, _ tag: ObjectTag, to target: String) throws -> Bool {
    try begin()
    return try objects.copy(key, tag, to: target)
  }

  package func delete(_ key: String, _ tag: ObjectTag?) throws {
    try begin()
    try objects.delete(key, tag)
  }

  package func list(_ prefix: String, after key: String?) throws -> [ObjectInfo] {
    try begin()
    return try objects.list(prefix, after: key)
  }
}

extension ObjectClient {
  /// For clients of tests, whose objects are small.
  package func get(_ key: String, in range: Range<Int>) throws -> StoredObject? {
    guard let there = try get(key, limit: .max), there.bytes.count >= range.upperBound else { return nil }
    return StoredObject(bytes: Array(there.bytes[range]), tag: there.tag)
  }
}
