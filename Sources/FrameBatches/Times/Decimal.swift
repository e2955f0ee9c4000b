/// A decimal number that is not negative, with every digit: `1767859512.000000`, `1.767859512e+09`.
struct Decimal {
  private let digits: [UInt8]
  /// The number of digits before the point.
  private let point: Int

  /// Digits of a number at most.
  private static let mostDigits = 64

  /// - Returns: nil for any other text.
  init?(_ text: some StringProtocol) {
    let isDigit: (UInt8) -> Bool = { (48...57).contains($0) }
    let parts = text.utf8.split(maxSplits: 1, omittingEmptySubsequences: false) { $0 | 0x20 == UInt8(ascii: "e") }
    let mantissa = parts[0].split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
    digits = mantissa.flatMap { Array($0) }
    guard !digits.isEmpty, digits.count <= Self.mostDigits, digits.allSatisfy(isDigit) else { return nil }
    var exponent = 0
    if parts.count == 2 {
      let isNegative = parts[1].first == UInt8(ascii: "-")
      let number = parts[1].drop { $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "-") }
      guard (1...2).contains(number.count), number.count + 1 >= parts[1].count, number.allSatisfy(isDigit) else {
        return nil
      }
      exponent = number.reduce(0) { $0 * 10 + Int($1 - 48) } * (isNegative ? -1 : 1)
    }
    point = mantissa[0].count + exponent
  }

  /// Whether there are digits behind the point.
  var hasFraction: Bool { point < digits.count }

  /// Returns the number times a power of ten, rounded to the nearest whole number.
  ///
  /// - Returns: nil on overflow.
  func scaled(by power: Int) -> Int64? {
    let end = point + power
    guard end <= 19 else { return digits.allSatisfy { $0 == 48 } ? 0 : nil }
    guard end >= 0 else { return 0 }
    var value: Int64 = 0
    for index in 0..<end {
      let digit = index < digits.count ? Int64(digits[index] - 48) : 0
      let (product, isTooLarge) = value.multipliedReportingOverflow(by: 10)
      let (sum, isLarger) = product.addingReportingOverflow(digit)
      guard !isTooLarge, !isLarger else { return nil }
      value = sum
    }
    return value + (end < digits.count && digits[end] >= 53 && value < .max ? 1 : 0)
  }
}
