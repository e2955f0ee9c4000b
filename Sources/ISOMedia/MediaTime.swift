import Glibc

/// Media time: 90 000 ticks a second. A millisecond is 90 ticks, so nothing is ever rounded.
package enum MediaTime {
  package static let timescale: Int64 = 90_000

  /// Maximum duration of a sample, 6.6 hours: readers keep its ticks in 31 bits (libavformat).
  package static let maximumSampleMs = Int64(Int32.max) * 1_000 / timescale

  package static func ticks(ms: Int64) -> Int64 { ms * (timescale / 1_000) }
}

extension BinaryInteger {
  /// Returns at least `count` decimal digits, with leading zeros.
  package func digits(_ count: Int) -> String {
    let text = String(self)
    return String(repeating: "0", count: Swift.max(0, count - text.count)) + text
  }
}

extension Int64 {
  /// Milliseconds as seconds with three decimals.
  package var secondsText: String { "\(self / 1_000).\((self % 1_000).digits(3))" }

  /// Unix milliseconds as ISO 8601, UTC.
  package var dateText: String {
    var seconds = time_t(self / 1_000)
    var parts = unsafe tm()
    unsafe gmtime_r(&seconds, &parts)
    return unsafe "\((parts.tm_year + 1_900).digits(4))-\((parts.tm_mon + 1).digits(2))-\(parts.tm_mday.digits(2))"
      + "T\(parts.tm_hour.digits(2)):\(parts.tm_min.digits(2)):\(parts.tm_sec.digits(2)).\((self % 1_000).digits(3))Z"
  }
}
