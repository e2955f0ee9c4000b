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
}
