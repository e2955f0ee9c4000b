import Glibc

/// Instants in unix milliseconds. Not an extension of `timespec`: other modules do not always see those of C types.
package enum WallClock {
  package static var nowMs: Int64 { nanoseconds(of: CLOCK_REALTIME) / 1_000_000 }

  /// Converts a time of a file, clamped so that sums do not overflow: a file may have any time.
  package static func unixMs(_ seconds: Int, _ nanoseconds: Int) -> Int64 {
    let seconds = min(max(Int64(seconds), -(1 << 40)), 1 << 40)
    return seconds * 1_000 + Int64(nanoseconds) / 1_000_000
  }
}
