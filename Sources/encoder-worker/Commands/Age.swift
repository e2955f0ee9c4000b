import ArgumentParser

/// An age: a number with its unit, such as `12h`.
struct Age {
  private static let unitMs: [Character: Int64] = [
    "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000,
  ]
  /// The maximum, about 35 000 years: no time minus an age overflows.
  private static let maximumMs: Int64 = 1 << 50

  let ms: Int64

  @Sendable init(_ text: String) throws {
    let wrong = ValidationError("\(text): an age is a number above 0 and s, m, h, d or w: 30m, 12h, 7d, 4w")
    guard let unit = text.last.flatMap({ Self.unitMs[$0] }), text.dropLast().utf8.allSatisfy({ 48...57 ~= $0 }),
      let number = Int64(text.dropLast()), (1...Self.maximumMs / unit).contains(number)
    else { throw wrong }
    ms = number * unit
  }
}
