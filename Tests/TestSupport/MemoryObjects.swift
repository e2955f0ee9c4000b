import Synchronization

@testable import Encoding
@testable import FileSystem
@testable import Sessions
@testable import WorkQueues

/// An in-memory object store that can fail, lose responses, or run another writer before a write.
package final class MemoryObjects: ObjectClient {
  package struct Refused: ClassifiedError {
    package var kind: Failure.Kind { .environment }
    package var description: String { "the store refused a call" }
  }

  /// Returns whether an error is this store's failure, thrown directly or for a session's views.
  package static func isFailure(_ error: any Error) -> Bool {
    ((error as? ViewUpdateFailure)?.error ?? error) is Refused
  }

  private struct State {
    /// By the bytes of their keys: as strings, two spellings of a letter are equal.
    var objects: [[UInt8]: [UInt8]] = [:]
    var agesS: [String: Int] = [:]
    var puts = 0
    var failing: Int?
    var losing: Int?
    var before: (@Sendable (String) -> Void)?
    var isUnconditional = false
  }

  private let state = Mutex(State())

  package init() {}

  package var keys: [String] {
    state.withLock { $0.objects.keys.sorted { $0.lexicographicallyPrecedes($1) } }.map {
      String(decoding: $0, as: UTF8.self)
    }
  }
  package var puts: Int { state.withLock { $0.puts } }

  package subscript(key: String) -> [UInt8]? {
    get { state.withLock { $0.objects[Array(key.utf8)] } }
    set { state.withLock { $0.objects[Array(key.utf8)] = newValue } }
  }

  /// Whether the store ignores conditions.
  package var isUnconditional: Bool {
    get { state.withLock { $0.isUnconditional } }
    set { state.withLock { $0.isUnconditional = newValue } }
  }

  package func age(_ key: String, seconds: Int) { state.withLock { $0.agesS[key] = seconds } }

  /// Sets a function that runs before each write, with the object's key and without a lock.
  package func before(_ body: (@Sendable (String) -> Void)?) { state.withLock { $0.before = body } }

  /// Makes this write and all later ones fail, counted from 0 from now on.
  package func fail(from put: Int?) { state.withLock { ($0.puts, $0.failing) = (0, put) } }

  /// Loses the response to this write, counted from 0 from now on. The client then retries it.
  package func loseAnswer(of put: Int) { state.withLock { ($0.puts, $0.losing) = (0, put) } }

  private static func tag(_ bytes: [UInt8]) -> ObjectTag { ObjectTag(SHA256.hex(of: bytes)) }

  package func get(_ key: String, limit: Int) throws -> StoredObject? {
    guard let bytes = self[key] else { return nil }
    guard bytes.count <= limit else { throw ObjectTooLarge(key: key, limit: limit) }
    return StoredObject(bytes: bytes, tag: Self.tag(bytes))
  }

  package func download(_ key: String, to path: String, limit: Int) throws -> ObjectTag? {
    guard let there = try get(key, limit: limit) else { return nil }
    try DurableFile.create(path, there.bytes, isDurable: false)
    return there.tag
  }

  package func head(_ key: String) throws -> ObjectInfo? {
    try get(key, limit: .max).map { there in
      ObjectInfo(
        key: key, size: there.bytes.count, tag: there.tag, ageS: state.withLock { $0.agesS[key] } ?? 0)
    }
  }

  package func put(_ key: String, _ body: ObjectBody, _ kind: ObjectKind, when condition: PutCondition) throws
    -> ObjectTag?
  {
    state.withLock { $0.before }?(key)
    let bytes =
      switch body {
      case .bytes(let bytes): bytes
      case .file(let path): try DurableFile.contents(of: path, limit: .max) ?? []
      }
    return try state.withLock { state in
      let number = state.puts
      state.puts += 1
      if let failing = state.failing, number >= failing { throw Refused() }
      var tag: ObjectTag?
      // The retry of a write finds the object that the first attempt wrote.
      for _ in 0..<(state.losing == number ? 2 : 1) {
        let there = state.objects[Array(key.utf8)].map(Self.tag)
        let holds =
          switch condition {
          case .always: true
          case .absent: there == nil
          case .matching(let tag): there == tag
          }
        tag = holds || state.isUnconditional ? Self.tag(bytes) : nil
        guard tag != nil else { break }
        state.objects[Array(key.utf8)] = bytes
        state.agesS[key] = 0
      }
      return tag
    }
  }

  package func copy(_ key: String, _ tag: ObjectTag, to target: String) throws -> Bool {
    guard let bytes = self[key], Self.tag(bytes) == tag else { return false }
    self[target] = bytes
    return true
  }

  package func delete(_ key: String, _ tag: ObjectTag?) throws {
    if tag == nil || tag == self[key].map(Self.tag) { self[key] = nil }
  }

  package func list(_ prefix: String, after key: String?) throws -> [ObjectInfo] {
    let last = key ?? ""
    let all = keys.filter {
      $0.utf8.starts(with: prefix.utf8) && last.utf8.lexicographicallyPrecedes($0.utf8)
    }
    return all.prefix(3).map { key in
      ObjectInfo(
        key: key, size: self[key]?.count ?? 0, tag: Self.tag(self[key] ?? []),
        ageS: state.withLock { $0.agesS[key] } ?? 0)
    }
  }
}
