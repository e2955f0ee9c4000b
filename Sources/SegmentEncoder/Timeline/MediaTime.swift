/// Media time: 90 000 ticks a second, so that a millisecond is 90 of them and nothing is ever rounded.
public enum MediaTime {
  public static let timescale: Int64 = 90_000

  public static func ticks(ms: Int64) -> Int64 { ms * (timescale / 1_000) }
}

extension Int64 {
  /// Milliseconds as seconds with all three decimals.
  var secondsText: String { "\(self / 1_000)." + String(1_000 + self % 1_000).dropFirst() }
}
