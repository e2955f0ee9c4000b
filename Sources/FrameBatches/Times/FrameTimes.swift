// The source of capture times when neither the recorder nor `batch.json` lists them.

/// A source of capture times.
package enum FrameTimes: Sendable, Equatable {
  /// The names of the files.
  case names(NamePattern)
  /// The times when the files were last modified.
  case modified
  /// The capture times that cameras write into the files.
  case exif
  /// A list. The first picture of a list of durations is captured at `startMs`.
  indirect case list(TimeList, startMs: Int64?)
  /// The counter in the names: the one of the pattern, else the one that ``NameCounter`` finds. The frame with the lowest number is
  /// captured at `startMs`, in unix milliseconds.
  case numbers(startMs: Int64, CaptureRate, NamePattern?)
  /// The durations in a file of several pictures, of which the first is captured at `startMs`.
  case durations(startMs: Int64)
}

/// A steady rate of captures.
package struct CaptureRate: Sendable, Equatable {
  /// The number of captures in `denominator` seconds.
  private let numerator: Int64
  private let denominator: Int64

  /// - Returns: nil for an interval that is not between 1 ms and an hour.
  package init?(intervalMs: Int64) {
    guard Limits.intervals.contains(intervalMs) else { return nil }
    (numerator, denominator) = (1_000, intervalMs)
  }

  /// - Parameter text: frames per second, as a number with at most nine decimals or as a fraction: `29.97`, `30000/1001`, `1/5`.
  /// - Returns: nil for anything that is not between one frame an hour and 1 000 frames a second.
  package init?(framesPerSecond text: String) {
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard let over = Self.decimal(parts[0]), let under = parts.count == 2 ? Self.decimal(parts[1]) : (1, 1),
      under.value > 0
    else { return nil }
    // Nine digits and nine decimals each: the products fit in 128 bits.
    let (value, per) = (Int128(over.value) * Int128(under.scale), Int128(under.value) * Int128(over.scale))
    guard 3_600 * value >= per, value <= 1_000 * per else { return nil }
    let divisor = Self.commonDivisor(value, per)
    guard let numerator = Int64(exactly: value / divisor), let denominator = Int64(exactly: per / divisor) else {
      return nil
    }
    (self.numerator, self.denominator) = (numerator, denominator)
  }

  private static func decimal(_ text: Substring) -> (value: Int64, scale: Int64)? {
    let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.allSatisfy({ (1...9).contains($0.utf8.count) && $0.utf8.allSatisfy { (48...57).contains($0) } }),
      let value = Int64(parts.joined())
    else { return nil }
    return (value, (0..<(parts.count == 2 ? parts[1].utf8.count : 0)).reduce(1) { scale, _ in 10 * scale })
  }

  private static func commonDivisor(_ one: Int128, _ other: Int128) -> Int128 {
    other == 0 ? one : commonDivisor(other, one % other)
  }

  /// Returns the time of a capture after the first one, in milliseconds. It is exact to half a millisecond for any number.
  ///
  /// - Returns: nil on overflow.
  func offsetMs(of number: Int64) -> Int64? {
    Int64(exactly: (Int128(number) * 1_000 * Int128(denominator) + Int128(numerator / 2)) / Int128(numerator))
  }

  /// Returns the number of the capture that is a time after the first one: the reverse of ``offsetMs(of:)``.
  func number(atOffsetMs offsetMs: Int64) -> Int64? {
    let scale = 1_000 * Int128(denominator)
    return Int64(exactly: (Int128(offsetMs) * Int128(numerator) + scale / 2) / scale)
  }

  /// The nominal interval in milliseconds, at least one.
  var intervalMs: Int64 { max(1, offsetMs(of: 1) ?? 1) }
}

/// An invalid option for input.
package struct InvalidOption: Error, Equatable {
  /// The options, by their names in `batch.json`.
  package enum Name: String, Sendable {
    case nameTime, times, start, fps, timeZone, labels
    case interval = "intervalMs"
  }

  package let name: Name
  /// The cause and the remedy.
  package let cause: String

  init(_ name: Name, _ cause: String) {
    self.name = name
    self.cause = cause
  }
}
