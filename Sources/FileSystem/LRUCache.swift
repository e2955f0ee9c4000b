/// Values by key. When their costs exceed a limit, the least recently used values are removed. A lookup compares one key after
/// the other. Not thread-safe: hold it in a `Mutex`.
package struct LRUCache<Key: Equatable, Value> {
  @usableFromInline struct Entry {
    @usableFromInline let key: Key
    @usableFromInline var value: Value
    @usableFromInline let cost: Int

    @inlinable init(key: Key, value: Value, cost: Int) { (self.key, self.value, self.cost) = (key, value, cost) }
  }

  @usableFromInline let limit: Int
  /// The most recently used entry is the last one.
  @usableFromInline var entries: [Entry] = []
  /// The sum of the costs.
  @usableFromInline var total = 0

  /// - Parameter limit: maximum sum of the costs; maximum number of values if each costs 1.
  @inlinable package init(limit: Int) { self.limit = limit }

  /// The least recently used first.
  @inlinable package var keys: [Key] { entries.map(\.key) }

  /// Returns the value of a key, which is the most recently used one then.
  @inlinable package mutating func value(of key: Key) -> Value? {
    guard let index = entries.lastIndex(where: { $0.key == key }) else { return nil }
    let found = entries.remove(at: index)
    entries.append(found)
    return found.value
  }

  /// Adds a value in the place of an earlier one of its key, then removes the least recently used ones beyond the limit. A value
  /// that costs more than the limit is not kept.
  @inlinable package mutating func insert(_ value: Value, for key: Key, cost: Int = 1) {
    if let index = entries.lastIndex(where: { $0.key == key }) { total -= entries.remove(at: index).cost }
    entries.append(Entry(key: key, value: value, cost: cost))
    total += cost
    while total > limit { total -= entries.removeFirst().cost }
  }

  @inlinable package mutating func removeAll(where isRemoved: (Key) -> Bool) {
    entries.removeAll { isRemoved($0.key) }
    total = entries.reduce(0) { $0 + $1.cost }
  }
}

extension LRUCache: Sendable where Key: Sendable, Value: Sendable {}
extension LRUCache.Entry: Sendable where Key: Sendable, Value: Sendable {}
