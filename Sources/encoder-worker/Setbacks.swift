import Glibc
import SegmentEncoder
import Synchronization

/// What failed for reasons that are not the batch's, and when it is tried again. A failure that concerns everybody (a full
/// disk) makes everybody wait; any other only what it happened to.
final class Setbacks: Sendable {
  private struct State {
    var first: (any Error)?
    /// Failures that concern everybody, without a success between.
    var inARow = 0
    var hasLostHost = false
    var postponed: [(errand: Worker.Errand, dueAt: Int)] = []
  }

  private let drains: Bool
  private let state = Mutex(State())

  /// - Parameter drains: whether what has failed once waits for the end.
  init(drains: Bool) { self.drains = drains }

  func succeed() { state.withLock { $0.inARow = 0 } }

  /// Puts something off, or only notes the failure.
  ///
  /// - Returns: for how many seconds everybody has to wait; nil where the failure concerns nobody else.
  @discardableResult
  func note(_ error: any Error, _ errand: Worker.Errand? = nil) -> Int? {
    let concernsAll = Self.concernsAll(error)
    return state.withLock { state in
      if !(error is UnknownFailure) { state.first = state.first ?? error }
      if error is SandboxError { state.hasLostHost = true }
      let pause = min(30, 1 << min(state.inARow, 5))
      if concernsAll { state.inARow += 1 }
      if let errand {
        // What counts is soon tried again: then it is decided.
        let isCounted = error is UnknownFailure
        state.postponed.append((errand, isCounted ? now() + 1 : drains ? .max : now() + (concernsAll ? pause : 30)))
      }
      return concernsAll ? pause : nil
    }
  }

  /// What is to be tried again now.
  func due() -> [Worker.Errand] {
    let moment = now()
    return state.withLock { state in
      let due = state.postponed.filter { $0.dueAt <= moment }.map(\.errand)
      state.postponed.removeAll { $0.dueAt <= moment }
      return due
    }
  }

  /// Batches in `incoming/` that could not be claimed and are left alone for now, by name.
  var avoided: Set<String> {
    state.withLock { state in
      Set(state.postponed.compactMap { if case .waiting(let entry) = $0.errand { entry.name } else { nil } })
    }
  }

  /// Whether something is put off that will be tried again soon.
  var isAwaiting: Bool { state.withLock { $0.postponed.contains { $0.dueAt != .max } } }

  /// Claims that are put off.
  var held: [Claim] { state.withLock { $0.postponed.compactMap(\.errand.claim) } }

  var first: (any Error)? { state.withLock { $0.first } }

  /// A drain goes on when single batches fail, but not when everything does. Without a host for decoders nothing goes on: it
  /// can only be forked at the start.
  var isHopeless: Bool { hasLostHost || drains && state.withLock { $0.inARow >= 3 } }

  var hasLostHost: Bool { state.withLock { $0.hasLostHost } }

  private static func concernsAll(_ error: any Error) -> Bool {
    switch error {
    case let failure as DiskError:
      [ENOSPC, EDQUOT, EIO, EROFS, ESTALE, EMFILE, ENFILE, ENOMEM].contains(failure.code)
    case is DamagedOutput, is UnknownFailure: false
    case let failure as FFmpegError: failure.code == -ENOMEM
    default: true
    }
  }
}

/// Monotonic seconds.
func now() -> Int {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return time.tv_sec
}
