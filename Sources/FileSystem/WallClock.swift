import Glibc

extension timespec {
  /// Clamped to what sums of it cannot overflow: a file may say any time.
  package var unixMs: Int64 {
    let seconds = min(max(Int64(tv_sec), -(1 << 40)), 1 << 40)
    return seconds * 1_000 + Int64(tv_nsec) / 1_000_000
  }

  /// This instant.
  package static var now: timespec {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return now
  }
}
