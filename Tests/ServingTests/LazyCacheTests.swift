import FileSystem
import TestSupport
import Testing

@testable import Serving

/// Values that are made once, by key.
@Suite struct LazyCacheTests {
  @Test func valueOfAnotherKeyIsMadeMeanwhile() throws {
    let cache = LazyCache<String, Int>(capacity: 2)
    let (threads, begun, release) = (ThreadGroup(), Flag(), Flag())
    try threads.start {
      _ = try? cache.value("a") {
        begun.set()
        return release.wait() ? 1 : 2
      }
    }
    #expect(begun.wait())
    #expect(try cache.value("b") { 3 } == 3)
    release.set()
    threads.join()
    #expect(try cache.value("a") { 4 } == 1)
    cache.removeAll { $0 == "a" }
    #expect(try cache.value("a") { 5 } == 5)
    #expect(try cache.value("c") { 6 } == 6)
    #expect(cache.keys == ["a", "c"])
  }

  @Test func valuesBeyondTheSumOfCostsAreRemoved() throws {
    let cache = LazyCache<String, [Int]>(capacity: 3) { $0.count }
    #expect(try cache.value("a") { [1, 2] } == [1, 2])
    #expect(try cache.value("b") { [3] } == [3])
    #expect(try cache.value("c") { [4] } == [4])
    #expect(cache.keys == ["b", "c"])
    #expect(try cache.value("d") { [1, 2, 3, 4] } == [1, 2, 3, 4])
    #expect(!cache.keys.contains("d"))
  }
}
