import FileSystem
import Synchronization
import WorkQueues

/// Schedules retries of work that failed for reasons other than its batch. A system-wide failure (a full disk) pauses
/// all threads; any other failure pauses its batch only.
final class RetryScheduler: Sendable {
  private struct State {
    var first: (any Error)?
    /// System-wide failures in a row, and the last of them.
    var inARow = 0
    var last: (any Error)?
    var fatal: (any Error)?
    var postponed: [(item: Worker.WorkItem, dueMs: Int)] = []
  }

  private static let longestPauseMs = 30_000

  private let drains: Bool
  private let state = Mutex(State())

  /// - Parameter drains: whether a failed batch is put back at the end instead of retried.
  init(drains: Bool) { self.drains = drains }

  /// Resets the count of system-wide failures in a row after a success.
  ///
  /// - Returns: whether the count was above zero.
  func succeed() -> Bool {
    state.withLock { state in
      defer { state.inARow = 0 }
      return state.inARow > 0
    }
  }

  /// Schedules a retry of an item, or only records the failure.
  ///
  /// - Parameter isSystemWide: nil to decide by the error.
  /// - Returns: the pause of all threads in milliseconds; nil if the failure concerns this batch only. Workers whose common disk is full
  ///   come back at different times.
  @discardableResult
  func record(_ error: any Error, _ item: Worker.WorkItem? = nil, isSystemWide: Bool? = nil) -> Int? {
    let isSystemWide = isSystemWide ?? Disposition.isSystemWide(error)
    let unknown = error as? UnknownFailure
    return state.withLock { state in
      if unknown == nil { state.first = state.first ?? error }
      if Disposition.endsWorker(error) { state.fatal = error }
      let pauseMs = BackOff.pauseMs(failures: state.inARow + 1, firstMs: 2_000, mostMs: Self.longestPauseMs)
      if isSystemWide {
        state.inARow += 1
        state.last = error
      }
      if let item, item.batch != nil {
        // A drain retries only counted failures: their number decides.
        let isRetried = !drains || unknown != nil
        let delayMs = unknown?.pauseMs ?? (isSystemWide ? pauseMs : Self.longestPauseMs)
        state.postponed.append((item, isRetried ? MonotonicClock.milliseconds() + delayMs : .max))
      }
      return isSystemWide ? pauseMs : nil
    }
  }

  /// The work that is due for a retry now.
  func due() -> [Worker.WorkItem] {
    let nowMs = MonotonicClock.milliseconds()
    return state.withLock { state in
      defer { state.postponed.removeAll { $0.dueMs <= nowMs } }
      return state.postponed.filter { $0.dueMs <= nowMs }.map(\.item)
    }
  }

  /// Names of batches in `incoming/` that could not be claimed and are deferred.
  var deferredNames: Set<String> {
    state.withLock { Set($0.postponed.compactMap { $0.item.claim == nil ? $0.item.batch : nil }) }
  }

  /// Whether a retry is due soon.
  var isAwaiting: Bool { state.withLock { $0.postponed.contains { $0.dueMs != .max } } }

  /// The number of deferred items.
  var count: Int { state.withLock { $0.postponed.count } }

  /// The claims of deferred items.
  var held: [Claim] { state.withLock { $0.postponed.compactMap(\.item.claim) } }

  /// The failure that pauses all threads, until something succeeds.
  var trouble: (any Error)? { state.withLock { $0.inARow > 0 ? $0.last : nil } }

  /// The first failure of the environment.
  var first: (any Error)? { state.withLock { $0.first } }

  /// Whether the worker should end: a drain ends after three system-wide failures in a row.
  var shouldAbort: Bool { fatal != nil || drains && state.withLock { $0.inARow >= 3 } }

  /// A failure that ends the worker.
  var fatal: (any Error)? { state.withLock { $0.fatal } }
}
