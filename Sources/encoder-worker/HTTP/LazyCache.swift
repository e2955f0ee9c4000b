import Synchronization

/// Values by key, each made by its first request, one at a time. Removes the least recently used values; keeps the last one.
final class LazyCache<Value: Sendable>: Sendable {
  private let capacity: Int
  private let maximumCost: Int
  private let cost: @Sendable (Value) -> Int
  /// The most recently used entry is the last one.
  private let entries = Mutex<[(key: String, value: Value)]>([])
  private let making = Mutex<Void>(())

  /// - Parameters:
  ///   - capacity: maximum number of values.
  ///   - maximumCost: maximum sum of the values' costs.
  init(capacity: Int, maximumCost: Int = .max, cost: @escaping @Sendable (Value) -> Int = { _ in 0 }) {
    (self.capacity, self.maximumCost, self.cost) = (capacity, maximumCost, cost)
  }

  /// Returns the value of a key; nil if it cannot be made.
  func value(_ key: String, _ make: () throws -> Value?) throws -> Value? {
    if let cached = cached(key) { return cached }
    return try making.withLock { _ in
      if let cached = cached(key) { return cached }
      guard let made = try make() else { return nil }
      entries.withLock { entries in
        entries.append((key, made))
        while entries.count > 1,
          entries.count > capacity || entries.reduce(0, { $0 + cost($1.value) }) > maximumCost
        {
          entries.removeFirst()
        }
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
