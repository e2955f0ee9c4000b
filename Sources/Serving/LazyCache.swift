import FileSystem
import Synchronization

/// Values by key, each made once by its first request while others with this key wait. Removes the least recently used values.
final class LazyCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private let made: Mutex<LRUCache<Key, Value>>
  private let making = KeyLocks<Key>()

  /// - Parameter capacity: maximum number of values.
  init(capacity: Int) { made = Mutex(LRUCache(limit: capacity)) }

  /// Returns the value of a key.
  func value(_ key: Key, _ make: () throws -> Value) throws -> Value {
    if let value = cached(key) { return value }
    return try making.withLock(key) {
      if let value = cached(key) { return value }
      let value = try make()
      made.withLock { $0.insert(value, for: key) }
      return value
    }
  }

  var keys: [Key] { made.withLock { $0.keys } }

  func removeAll(where isRemoved: (Key) -> Bool) { made.withLock { $0.removeAll(where: isRemoved) } }

  private func cached(_ key: Key) -> Value? { made.withLock { $0.value(of: key) } }
}
