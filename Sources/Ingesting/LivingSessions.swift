import FileSystem
import FrameBatches
import Sessions
import Synchronization

/// The sessions that were not deleted when a store was asked, some seconds ago. Without it, each picture would cost a request. A batch
/// of a session that was deleted since is refused when it is published.
package final class LivingSessions: Sendable {
  /// The time for which an answer holds, in milliseconds.
  package static let validMs = 10_000
  /// Maximum number of sessions.
  private static let maximumCount = 100_000

  private let tombstone: @Sendable (SessionID) throws -> Tombstone?
  private let clock: @Sendable () -> Int
  /// When each was asked for, in monotonic milliseconds.
  private let asked = Mutex<[SessionID: Int]>([:])

  /// - Parameters:
  ///   - clock: a monotonic clock, in milliseconds.
  ///   - tombstone: asks the store for that of a session that was deleted.
  package init(
    clock: @escaping @Sendable () -> Int = MonotonicClock.milliseconds,
    _ tombstone: @escaping @Sendable (SessionID) throws -> Tombstone?
  ) {
    (self.clock, self.tombstone) = (clock, tombstone)
  }

  /// Returns the tombstone of a session that was deleted; nil for others, and for those that were just deleted.
  package func tombstone(of session: SessionID) throws -> Tombstone? {
    let nowMs = clock()
    if asked.withLock({ $0[session].map { nowMs - $0 < Self.validMs } ?? false }) { return nil }
    if let found = try tombstone(session) { return found }
    asked.withLock { asked in
      if asked.count >= Self.maximumCount { asked = asked.filter { nowMs - $0.value < Self.validMs } }
      if asked.count < Self.maximumCount { asked[session] = nowMs }
    }
    return nil
  }
}
