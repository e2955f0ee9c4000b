import Encoding
import FileSystem
import Glibc
import Sessions
import Synchronization
import WorkQueues

/// Schedules retries of work that failed for reasons other than its batch. A failure that concerns everybody (a full
/// disk) makes everybody wait; any other only what it happened to.
final class RetryScheduler: Sendable {
  private struct State {
    var first: (any Error)?
    /// Failures that concern everybody, without a success between.
    var inARow = 0
    var last: (any Error)?
    /// After this nothing can go on.
    var fatal: (any Error)?
    var postponed: [(item: Worker.WorkItem, dueAt: Int)] = []
  }

  private let drains: Bool
  private let state = Mutex(State())

  /// - Parameter drains: whether what has failed once waits for the end.
  init(drains: Bool) { self.drains = drains }

  /// - Returns: whether everybody had to wait before.
  func succeed() -> Bool {
    state.withLock { state in
      defer { state.inARow = 0 }
      return state.inARow > 0
    }
  }

  /// Puts something off, or only notes the failure.
  ///
  /// - Returns: for how many seconds all threads have to wait; nil where the failure concerns this batch only.
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

  /// Batches in `incoming/` that could not be claimed and are left alone for now, by name.
  var deferredNames: Set<String> {
    state.withLock { state in
      Set(state.postponed.compactMap { if case .waiting(let offer) = $0.item { offer.name } else { nil } })
    }
  }

  /// Whether something is put off that will be tried again soon.
  var isAwaiting: Bool { state.withLock { $0.postponed.contains { $0.dueAt != .max } } }

  /// How many are put off.
  var count: Int { state.withLock { $0.postponed.count } }

  /// Claims that are put off.
  var held: [Claim] { state.withLock { $0.postponed.compactMap(\.item.claim) } }

  /// The failure that pauses all threads, until something succeeds.
  var trouble: (any Error)? { state.withLock { $0.inARow > 0 ? $0.last : nil } }

  var first: (any Error)? { state.withLock { $0.first } }

  /// A drain goes on when single batches fail, but not when everything does.
  var shouldAbort: Bool { fatal != nil || drains && state.withLock { $0.inARow >= 3 } }

  /// A failure that only a restart mends: the host for decoders can be forked only then, and a place in the spool taken.
  var fatal: (any Error)? { state.withLock { $0.fatal } }
}
