import FrameBatches
import Synchronization
import Testing

@testable import Ingesting
@testable import Sessions

/// A store is not asked for each picture whether its session was deleted.
@Suite struct LivingSessionsTests {
  private final class Store: Sendable {
    let state = Mutex((questions: 0, nowMs: 0, deleted: nil as Tombstone?))

    func tombstone(of session: SessionID) -> Tombstone? {
      state.withLock {
        $0.questions += 1
        return $0.deleted
      }
    }
  }

  @Test func answerHoldsForSomeSeconds() throws {
    let store = Store()
    let living = LivingSessions(clock: { store.state.withLock { $0.nowMs } }, store.tombstone)
    let (one, other) = (try #require(SessionID("one")), try #require(SessionID("other")))
    for _ in 0..<100 { #expect(try living.tombstone(of: one) == nil) }
    #expect(store.state.withLock { $0.questions } == 1)
    #expect(try living.tombstone(of: other) == nil)
    #expect(store.state.withLock { $0.questions } == 2)
    // A deletion is seen when the answer is old, and from then on at once.
    let tombstone = Tombstone(one, deletedAtMs: 1, reason: "")
    store.state.withLock { ($0.deleted, $0.nowMs) = (tombstone, LivingSessions.validMs - 1) }
    #expect(try living.tombstone(of: one) == nil)
    store.state.withLock { $0.nowMs += 1 }
    for _ in 0..<3 { #expect(try living.tombstone(of: one) == tombstone) }
    // So is its end.
    store.state.withLock { $0.deleted = nil }
    #expect(try living.tombstone(of: one) == nil)
  }
}
