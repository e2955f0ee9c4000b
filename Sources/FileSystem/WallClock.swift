import Glibc

/// Instants in unix milliseconds. Not an extension of `timespec`: other modules do not always see those of C types.
package enum WallClock {
  package static var nowMs: Int64 {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return unixMs(now.tv_sec, now.tv_nsec)
  }

  /// Clamped to what sums of it cannot overflow: a file may say any time.
  package static func unixMs(_ seconds: Int, _ nanoseconds: Int) -> Int64 {
    let seconds = min(max(Int64(seconds), -(1 << 40)), 1 << 40)
    return seconds * 1_000 + Int64(nanoseconds) / 1_000_000
  }
}
