/// Parses instants in the forms that recorders write.
enum UnixTime {
  /// The number of milliseconds nearest to a JSON number of seconds; halves are rounded up. The number is not converted to binary.
  ///
  /// - Returns: nil for a negative number, and for one beyond the year 5138.
  static func milliseconds(ofSeconds number: String) -> Int64? {
    let parts = number.lowercased().split(separator: "e", omittingEmptySubsequences: false)
    let mantissa = parts[0].split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count <= 2, let exponent = parts.count == 2 ? Int(parts[1]) : 0, abs(exponent) <= 1_000 else {
      return nil
    }
    let fraction = mantissa.count == 2 ? mantissa[1] : ""
    // The digits from the first one that is not 0, and how many of them stand before the point of milliseconds.
    let digits = (mantissa[0] + fraction).drop { $0 == "0" }
    guard digits.allSatisfy({ $0.isASCII && $0.isNumber }) else { return nil }
    let whole = digits.count - fraction.count + exponent + 3
    guard whole <= 14 else { return nil }
    guard whole >= 0 else { return 0 }
    let padded = digits + String(repeating: "0", count: max(0, whole + 1 - digits.count))
    let isRoundedUp = padded.dropFirst(whole).first.map { $0 >= "5" } ?? false
    return (Int64(padded.prefix(whole)) ?? 0) + (isRoundedUp ? 1 : 0)
  }
}
