import Glibc

/// A clock that cannot be set, and that stands still while the machine sleeps.
package enum MonotonicClock {
  package static func milliseconds() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return time.tv_sec * 1_000 + time.tv_nsec / 1_000_000
  }

  package static func seconds() -> Int { milliseconds() / 1_000 }
}
