import Synchronization

/// Values by key, each made by its first request, one at a time. Removes the least recently used value.
final class LazyCache<Value: Sendable>: Sendable {
  private let capacity: Int
  /// The most recently used entry is the last one.
  private let entries = Mutex<[(key: String, value: Value)]>([])
  private let making = Mutex<Void>(())

  init(capacity: Int) { self.capacity = capacity }

  /// Returns the value of a key; nil if it cannot be made.
  func value(_ key: String, _ make: () throws -> Value?) throws -> Value? {
    if let cached = cached(key) { return cached }
    return try making.withLock { _ in
      if let cached = cached(key) { return cached }
      guard let made = try make() else { return nil }
      entries.withLock { entries in
        entries.append((key, made))
        if entries.count > capacity { entries.removeFirst() }
      }
      return made
    }
  }

  private func cached(_ key: String) -> Value? {
    entries.withLock { entries in
      guard let index = entries.lastIndex(where: { $0.key == key }) else { return nil }
      let found = entries.remove(at: index)
      entries.append(found)
      return found.value
    }
  }
}
