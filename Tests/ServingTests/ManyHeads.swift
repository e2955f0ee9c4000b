import Foundation
import Synchronization
import TestSupport

@testable import FileSystem
@testable import Sessions

/// A store of any number of sessions that are like one, made when they are asked for. It lists 1 000 objects at once, and counts requests and
/// the bytes of objects.
final class ManyHeads: ObjectClient {
  private let count: Int
  private let head: String
  private let made = Mutex((requests: 0, bytes: 0))

  /// - Parameter head: that of the session `walk`.
  init(_ count: Int, like head: String) { (self.count, self.head) = (count, head) }

  var counts: (requests: Int, bytes: Int) { made.withLock { $0 } }

  private func key(_ number: Int) -> String { String(format: "index/s%06d/head.json", number) }

  func get(_ key: String, limit: Int) throws -> StoredObject? {
    let name = key.split(separator: "/").dropFirst().first.map(String.init) ?? ""
    guard let number = Int(name.dropFirst()), number < count else {
      made.withLock { $0.requests += 1 }
      return nil
    }
    let startMs = LongSession.startMs + Int64(number) * 1_000
    let bytes = Array(
      head.replacing("\"walk\"", with: "\"\(name)\"").replacing("\(LongSession.startMs)", with: "\(startMs)").utf8)
    made.withLock { $0 = ($0.requests + 1, $0.bytes + bytes.count) }
    return StoredObject(bytes: bytes, tag: ObjectTag("\(number)"))
  }

  func list(_ prefix: String, after key: String?) throws -> [ObjectInfo] {
    made.withLock { $0.requests += 1 }
    let first = key.flatMap { Int($0.dropFirst("index/s".count).prefix(6)) }.map { $0 + 1 } ?? 0
    return (first..<min(first + 1_000, count)).map { number in
      ObjectInfo(key: self.key(number), size: head.utf8.count, tag: ObjectTag("\(number)"), modifiedMs: Int64(number))
    }
  }

  func head(_ key: String) throws -> ObjectInfo? { nil }
  func download(_ key: String, to path: String, limit: Int) throws -> ObjectTag? { nil }
  func put(_ key: String, _ body: ObjectBody, _ kind: ObjectKind, when condition: PutCondition) throws -> ObjectTag? {
    nil
  }
  func copy(_ key: String, _ tag: ObjectTag, to target: String) throws -> Bool { false }
  func delete(_ key: String, _ tag: ObjectTag?) throws {}
}
