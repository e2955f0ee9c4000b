import ArgumentParser

/// A number of bytes, perhaps with a unit, such as `500MB` or `2GiB`.
enum ByteCount {
  private static let units: [String: Int] = [
    "": 1, "b": 1, "kb": 1_000, "mb": 1_000_000, "gb": 1_000_000_000, "tb": 1_000_000_000_000, "kib": 1 << 10,
    "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
  ]

  static let rule = "a number of bytes, or a number and kB, MB, GB, TB, KiB, MiB, GiB or TiB: 500MB, 2GiB"

  /// Returns the number of bytes; nil for any other text. A unit of one letter is refused: programs differ on its meaning.
  static func bytes(_ text: some StringProtocol) -> Int? {
    let digits = text.prefix { ("0"..."9").contains($0) }
    guard let number = Int(digits), let unit = units[text[digits.endIndex...].drop { $0 == " " }.lowercased()],
      case (let bytes, let isTooMuch) = number.multipliedReportingOverflow(by: unit), !isTooMuch
    else { return nil }
    return bytes
  }

  @Sendable static func parse(_ text: String) throws -> Int {
    guard let bytes = bytes(text) else { throw ValidationError("\(text): it is \(rule)") }
    return bytes
  }
}
