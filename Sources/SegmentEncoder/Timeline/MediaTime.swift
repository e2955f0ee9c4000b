/// Media time: 90 000 ticks a second, so that a millisecond is 90 of them and nothing is ever rounded.
public enum MediaTime {
  public static let timescale: Int64 = 90_000

  public static func ticks(ms: Int64) -> Int64 { ms * (timescale / 1_000) }
}

extension Shot {
  /// In how many samples a picture is coded so that players keep time.
  ///
  /// Chromium ends a file of one sample at once and cuts irregular tails; a picture repeated every 500 ms cures that,
  /// and regular captures at about one a second need nothing. The last picture of a batch keeps half an interval
  /// free of repeats at its end, because there the next batch may cut it short (a seam).
  func sampleCount(intervalMs: Int64) -> Int64 {
    let isAlone = opensSegment && closing != nil
    if holdMs <= 1_250 && !isAlone { return 1 }
    let wanted = (holdMs + 499) / 500
    guard closing?.endsBatch == true else { return wanted }
    return max(1, min(wanted, 2 * holdMs / intervalMs))
  }

  /// Where its samples start, in ticks from its own start, evenly spread.
  func sampleStarts(intervalMs: Int64) -> [Int64] {
    let count = sampleCount(intervalMs: intervalMs)
    return (0..<count).map { MediaTime.ticks(ms: holdMs) * $0 / count }
  }
}
