import Glibc

/// Media time: 90 000 ticks a second, so that a millisecond is 90 of them and nothing is ever rounded.
package enum MediaTime {
  package static let timescale: Int64 = 90_000

  /// The longest that one sample can last, 6.6 hours: readers keep its ticks in 31 bits (libavformat).
  package static let maximumSampleMs = Int64(Int32.max) * 1_000 / timescale

  package static func ticks(ms: Int64) -> Int64 { ms * (timescale / 1_000) }
}

extension Int64 {
  /// Milliseconds as seconds with all three decimals.
  package var secondsText: String { "\(self / 1_000)." + String(1_000 + self % 1_000).dropFirst() }

  /// Unix milliseconds as ISO 8601, UTC.
  package var dateText: String {
    var seconds = time_t(self / 1_000)
    var parts = tm()
    gmtime_r(&seconds, &parts)
    func digits(_ value: Int32, _ count: Int) -> String {
      let text = String(value)
      return String(repeating: "0", count: Swift.max(0, count - text.count)) + text
    }
    return "\(digits(parts.tm_year + 1_900, 4))-\(digits(parts.tm_mon + 1, 2))-\(digits(parts.tm_mday, 2))"
      + "T\(digits(parts.tm_hour, 2)):\(digits(parts.tm_min, 2)):\(digits(parts.tm_sec, 2))"
      + ".\(digits(Int32(self % 1_000), 3))Z"
  }
}
