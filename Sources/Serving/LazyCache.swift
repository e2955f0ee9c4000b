import FileSystem
import Synchronization

/// Values by key, each made once by its first request while others with this key wait. Removes the least recently used values.
final class LazyCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private let made: Mutex<LRUCache<Key, Value>>
  private let making = KeyLocks<Key>()
  private let cost: @Sendable (Value) -> Int

  /// - Parameters:
  ///   - capacity: maximum sum of the costs; maximum number of values if each costs 1.
  ///   - cost: of a value. One that costs more than the capacity is made for each request.
  init(capacity: Int, cost: @escaping @Sendable (Value) -> Int = { _ in 1 }) {
    made = Mutex(LRUCache(limit: capacity))
    self.cost = cost
  }

  /// Returns the value of a key.
  func value(_ key: Key, _ make: () throws -> Value) throws -> Value {
    if let value = cached(key) { return value }
    return try making.withLock(key) {
      if let value = cached(key) { return value }
      let value = try make()
      let cost = cost(value)
      made.withLock { $0.insert(value, for: key, cost: cost) }
      return value
    }
  }

  var keys: [Key] { made.withLock { $0.keys } }

  func removeAll(where isRemoved: (Key) -> Bool) { made.withLock { $0.removeAll(where: isRemoved) } }

  private func cached(_ key: Key) -> Value? { made.withLock { $0.value(of: key) } }
}
