/// Reads the text of a ``NamePattern``.
enum NamePatternParser {
  /// Maximum number of optional parts.
  private static let optionals = 4

  /// Returns the fields with and without each optional part, all parts first; nil for a text that is no pattern.
  static func alternatives(of text: String) -> [[NamePattern.Field]]? {
    var alternatives: [[NamePattern.Field]] = [[]]
    // The alternatives before an optional part that is open.
    var skipped: [[NamePattern.Field]]?
    var optionals = 0
    var rest = text.unicodeScalars[...]
    while let scalar = rest.popFirst() {
      switch scalar {
      case "[":
        guard skipped == nil, optionals < Self.optionals else { return nil }
        optionals += 1
        skipped = alternatives
      case "]":
        guard let without = skipped else { return nil }
        alternatives += without
        skipped = nil
      case "%":
        guard let field = field(&rest) else { return nil }
        alternatives = alternatives.map { $0 + [field] }
      default:
        let fields =
          scalar.properties.generalCategory == .spaceSeparator
          ? [.space] : String(scalar).utf8.map(NamePattern.Field.literal)
        alternatives = alternatives.map { $0 + fields }
      }
    }
    return skipped == nil ? alternatives : nil
  }

  /// Reads a field behind its percent sign.
  private static func field(_ rest: inout Substring.UnicodeScalarView) -> NamePattern.Field? {
    guard let letter = rest.popFirst() else { return nil }
    switch letter {
    case "-":
      guard let part = rest.popFirst().flatMap(shortPart), part != .shortYear else { return nil }
      return .digits(part, 1...2)
    case "Y": return .digits(.year, 4...4)
    case "j": return .digits(.yearDay, 3...3)
    case "b", "B": return .monthName
    case "L": return .digits(.fraction, 3...3)
    case "f": return .digits(.fraction, 1...9)
    case "Q": return .digits(.unix, 1...19)
    case "q": return .digits(.sequence, 1...18)
    case "p": return .halfDay
    case "s": return .seconds
    case "z": return .zone
    case "g": return .group
    case "*": return .anything
    case "%", "[", "]": return .literal(UInt8(letter.value))
    default: return shortPart(letter).map { .digits($0, 2...2) }
    }
  }

  /// The numbers of two digits. Behind `%-` they have one or two.
  private static func shortPart(_ letter: UnicodeScalar) -> NamePattern.Part? {
    switch letter {
    case "y": .shortYear
    case "m": .month
    case "d": .day
    case "H": .hour
    case "I": .halfDayHour
    case "M": .minute
    case "S": .second
    default: nil
    }
  }
}
