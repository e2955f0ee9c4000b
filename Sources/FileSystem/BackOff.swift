/// Pauses between attempts that fail: exponential, with jitter.
package enum BackOff {
  /// Returns the pause after a number of failures in a row, in milliseconds.
  ///
  /// - Parameters:
  ///   - firstMs: the pause after the first failure, in milliseconds.
  ///   - mostMs: the longest pause, in milliseconds.
  ///   - jitter: from 0 to 1; the pause is between a half and the whole of the exponential one.
  package static func pauseMs(
    failures: Int, firstMs: Int = 500, mostMs: Int = 60_000, jitter: Double = .random(in: 0...1)
  ) -> Int {
    let wholeMs = min(mostMs, firstMs << min(max(failures - 1, 0), 16))
    return wholeMs / 2 + Int(Double(wholeMs - wholeMs / 2) * jitter)
  }
}
