import Synchronization
import TestSupport
import Testing

@testable import Remote

/// Batches are handed back when other requests have to end.
@Suite struct StopGraceTests {
  @Test func requestsGoOnForSomeTimeAfterAStop() throws {
    let isOverdue = Mutex(false)
    let grace = StopGrace { isOverdue.withLock { $0 } }
    #expect(!grace.isOver)
    isOverdue.withLock { $0 = true }
    #expect(!grace.isOver)
    try waitUntil("the time is over") { grace.isOver }
  }
}
