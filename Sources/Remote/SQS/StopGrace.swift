import FileSystem
import Synchronization

/// The time after a stop in which batches are handed back: the requests for that begin when others have to end.
final class StopGrace: Sendable {
  /// Milliseconds.
  private static let graceMs = 3_000

  private let isOverdue: @Sendable () -> Bool
  private let sinceMs = Mutex<Int?>(nil)

  /// - Parameter isOverdue: whether requests for the work on batches have to end.
  init(after isOverdue: @escaping @Sendable () -> Bool) { self.isOverdue = isOverdue }

  /// Whether all requests have to end.
  var isOver: Bool {
    guard isOverdue() else { return false }
    let now = MonotonicClock.milliseconds()
    return sinceMs.withLock { since in
      let first = since ?? now
      since = first
      return now - first > Self.graceMs
    }
  }
}
