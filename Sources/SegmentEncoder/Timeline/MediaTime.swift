/// Media time: 90 000 ticks a second, so that a millisecond is 90 of them and nothing is ever rounded.
public enum MediaTime {
  public static let timescale: Int64 = 90_000

  public static func ticks(ms: Int64) -> Int64 { ms * (timescale / 1_000) }
}

extension Shot {
  /// In how many samples a picture is coded so that players keep time.
  ///
  /// Chromium ends a file of one sample at once and cuts irregular tails; a picture repeated every 500 ms cures that,
  /// and regular captures at about one a second need nothing.
  var sampleCount: Int64 {
    let isAlone = opensSegment && closing != nil
    return holdMs <= 1_100 && !isAlone ? 1 : (holdMs + 499) / 500
  }

  /// Where its samples start, in ticks from its own start, evenly spread.
  var sampleStarts: [Int64] {
    (0..<sampleCount).map { MediaTime.ticks(ms: holdMs) * $0 / sampleCount }
  }
}
