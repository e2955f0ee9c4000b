import Encoding
import FileSystem
import Glibc
import Sessions
import Synchronization
import WorkQueues

/// Schedules retries of work that failed for reasons other than its batch. A system-wide failure (a full disk) pauses all threads;
/// any other failure pauses its batch only.
final class RetryScheduler: Sendable {
  private struct State {
    var first: (any Error)?
    /// System-wide failures in a row.
    var inARow = 0
    var last: (any Error)?
    /// A failure that ends the worker.
    var fatal: (any Error)?
    var postponed: [(item: Worker.WorkItem, dueAt: Int)] = []
  }

  private let drains: Bool
  private let state = Mutex(State())

  /// - Parameter drains: whether a batch that failed once is put back at the end instead of retried.
  init(drains: Bool) { self.drains = drains }

  /// - Returns: whether all threads were paused before.
  func succeed() -> Bool {
    state.withLock { state in
      defer { state.inARow = 0 }
      return state.inARow > 0
    }
  }

  /// Schedules a retry of an item, or only records the failure.
  ///
  /// - Returns: the pause of all threads in seconds; nil if the failure concerns this batch only.
  @discardableResult
  func note(_ error: any Error, _ item: Worker.WorkItem? = nil, isSystemWide: Bool? = nil) -> Int? {
    let isSystemWide = isSystemWide ?? (!(error is UnknownFailure) && Disposition.isSystemWide(error))
    return state.withLock { state in
      if !(error is UnknownFailure) { state.first = state.first ?? error }
      if error is SandboxError || error is WorkerEvicted { state.fatal = error }
      let pause = min(30, 1 << min(state.inARow, 5))
      if isSystemWide {
        state.inARow += 1
        state.last = error
      }
      if let item, item.isOfOneBatch {
        // A counted failure is retried even in a drain, until it is decided.
        let counted = (error as? UnknownFailure)?.pause
        let later = drains ? .max : MonotonicClock.seconds() + (isSystemWide ? pause : 30)
        state.postponed.append((item, counted.map { MonotonicClock.seconds() + $0 } ?? later))
      }
      return isSystemWide ? pause : nil
    }
  }

  /// The work that is due for a retry now.
  func due() -> [Worker.WorkItem] {
    let moment = MonotonicClock.seconds()
    return state.withLock { state in
      let due = state.postponed.filter { $0.dueAt <= moment }.map(\.item)
      state.postponed.removeAll { $0.dueAt <= moment }
      return due
    }
  }

  /// Names of batches in `incoming/` that could not be claimed and are deferred.
  var deferredNames: Set<String> {
    state.withLock { state in
      Set(state.postponed.compactMap { if case .waiting(let offer) = $0.item { offer.name } else { nil } })
    }
  }

  /// Whether a retry is due soon.
  var isAwaiting: Bool { state.withLock { $0.postponed.contains { $0.dueAt != .max } } }

  /// The number of deferred items.
  var count: Int { state.withLock { $0.postponed.count } }

  /// The claims of deferred items.
  var held: [Claim] { state.withLock { $0.postponed.compactMap(\.item.claim) } }

  /// The failure that pauses all threads, until something succeeds.
  var trouble: (any Error)? { state.withLock { $0.inARow > 0 ? $0.last : nil } }

  var first: (any Error)? { state.withLock { $0.first } }

  /// Whether the worker should end: a drain ends after three system-wide failures in a row.
  var shouldAbort: Bool { fatal != nil || drains && state.withLock { $0.inARow >= 3 } }

  /// A failure that only a restart mends: the host for decoders can be forked only then, and a place in the spool taken.
  var fatal: (any Error)? { state.withLock { $0.fatal } }
}
