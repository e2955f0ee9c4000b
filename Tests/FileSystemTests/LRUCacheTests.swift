import FileSystem
import Testing

/// Which values a cache keeps.
@Suite struct LRUCacheTests {
  private func cache(_ keys: String..., limit: Int) -> LRUCache<String, Int> {
    var cache = LRUCache<String, Int>(limit: limit)
    for (number, key) in keys.enumerated() { cache.insert(number, for: key) }
    return cache
  }

  @Test func leastRecentlyUsedValueIsRemovedBeyondTheLimit() {
    var cache = cache("a", "b", "c", limit: 3)
    #expect(cache.value(of: "a") == 0)
    cache.insert(3, for: "d")
    #expect(cache.keys == ["c", "a", "d"])
    #expect(cache.value(of: "b") == nil)
    #expect(cache.value(of: "c") == 2)
    #expect(cache.keys == ["a", "d", "c"])
  }

  @Test func newValueReplacesThatOfItsKey() {
    var cache = cache("a", "b", limit: 2)
    cache.insert(7, for: "a")
    #expect(cache.keys == ["b", "a"])
    #expect(cache.value(of: "a") == 7)
  }

  @Test func costsLimitTheValues() {
    var cache = LRUCache<String, Int>(limit: 10)
    for key in ["a", "b", "c"] { cache.insert(0, for: key, cost: 3) }
    cache.insert(0, for: "d", cost: 4)
    #expect(cache.keys == ["b", "c", "d"])
    // The earlier cost of a key does not count any more.
    for _ in 0..<5 { cache.insert(0, for: "b", cost: 2) }
    #expect(cache.keys == ["c", "d", "b"])
    cache.insert(0, for: "e", cost: 10)
    #expect(cache.keys == ["e"])
  }

  @Test func valueThatCostsMoreThanTheLimitIsNotKept() {
    var cache = cache("a", limit: 3)
    cache.insert(0, for: "b", cost: 4)
    #expect(cache.value(of: "b") == nil)
    cache.insert(5, for: "c")
    #expect(cache.value(of: "c") == 5)
  }

  @Test func removedValuesCostNothing() {
    var cache = cache("a", "b", "c", limit: 3)
    cache.removeAll { $0 != "b" }
    #expect(cache.keys == ["b"])
    cache.insert(8, for: "d", cost: 2)
    #expect(cache.keys == ["b", "d"])
  }
}
