import Glibc

/// A clock that cannot be set. It stops while the machine sleeps.
package enum MonotonicClock {
  package static func milliseconds() -> Int { Int(nanoseconds(of: CLOCK_MONOTONIC) / 1_000_000) }

  package static func seconds() -> Int { milliseconds() / 1_000 }
}

/// Reads a clock of clock_gettime(2).
func nanoseconds(of clock: clockid_t) -> Int64 {
  var time = timespec()
  clock_gettime(clock, &time)
  return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}
