import FileSystem
import Synchronization

/// Values by key, each made once by its first request while others with this key wait. Removes the least recently used values.
final class LazyCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private let capacity: Int
  /// The most recently used entry is the last one.
  private let entries = Mutex<[(key: Key, value: Value)]>([])
  private let making = KeyLocks<Key>()

  /// - Parameter capacity: maximum number of values.
  init(capacity: Int) { self.capacity = capacity }

  /// Returns the value of a key.
  func value(_ key: Key, _ make: () throws -> Value) throws -> Value {
    if let cached = cached(key) { return cached }
    return try making.withLock(key) {
      if let cached = cached(key) { return cached }
      let made = try make()
      entries.withLock { entries in
        entries.append((key, made))
        if entries.count > capacity { entries.removeFirst() }
      }
      return made
    }
  }

  var keys: [Key] { entries.withLock { $0.map(\.key) } }

  func removeAll(where isRemoved: (Key) -> Bool) { entries.withLock { $0.removeAll { isRemoved($0.key) } } }

  private func cached(_ key: Key) -> Value? {
    entries.withLock { entries in
      guard let index = entries.lastIndex(where: { $0.key == key }) else { return nil }
      let found = entries.remove(at: index)
      entries.append(found)
      return found.value
    }
  }
}
