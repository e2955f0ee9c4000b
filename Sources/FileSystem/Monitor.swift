import Glibc

/// A state that threads share and wait for: a lock with a condition variable. `Mutex` has no condition, and a thread that waits here
/// does not block Swift's cooperative pool.
package final class Monitor<State>: @unchecked Sendable {
  /// The result of a check of the state.
  package enum CheckResult<Value> {
    case found(Value)
    /// Check again after a change; or after this many milliseconds, if there is no change before.
    case wait(ms: Int?)
  }

  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  /// Guarded by `mutex`.
  private var state: State

  package init(_ state: State) {
    self.state = state
    pthread_mutex_init(mutex, nil)
    // A clock that cannot be set.
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    pthread_cond_init(changed, &attributes)
    pthread_condattr_destroy(&attributes)
  }

  deinit {
    pthread_cond_destroy(changed)
    pthread_mutex_destroy(mutex)
    changed.deallocate()
    mutex.deallocate()
  }

  /// Reads the state.
  package func read<Value>(_ body: (State) -> Value) -> Value {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return body(state)
  }

  /// Changes the state, and wakes all threads that wait.
  package func change<Value>(_ body: (inout State) -> Value) -> Value {
    pthread_mutex_lock(mutex)
    defer {
      pthread_cond_broadcast(changed)
      pthread_mutex_unlock(mutex)
    }
    return body(&state)
  }

  /// Waits until `check` finds a value. A change that `check` makes wakes no other thread.
  package func wait<Value>(until check: (inout State) -> CheckResult<Value>) -> Value {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while true {
      switch check(&state) {
      case .found(let value): return value
      case .wait(ms: nil): pthread_cond_wait(changed, mutex)
      case .wait(let ms?):
        var until = timespec()
        clock_gettime(CLOCK_MONOTONIC, &until)
        let nanoseconds = until.tv_nsec + max(0, ms) % 1_000 * 1_000_000
        until.tv_sec += max(0, ms) / 1_000 + nanoseconds / 1_000_000_000
        until.tv_nsec = nanoseconds % 1_000_000_000
        pthread_cond_timedwait(changed, mutex, &until)
      }
    }
  }
}
