/// The search for the fields of a pattern in a name: tries all lengths of each field, and each field at each offset only once.
struct NamePatternSearch {
  private let fields: [NamePattern.Field]
  private let name: [UInt8]
  private var match = NamePattern.Match()
  private var failed: Set<Int> = []

  init(_ fields: [NamePattern.Field], _ name: [UInt8]) {
    self.fields = fields
    self.name = name
  }

  /// Returns the fields that the whole name has; nil for a name of another pattern.
  mutating func found() -> NamePattern.Match? { matches(0, 0) ? match : nil }

  /// Whether the fields from `index` match the name from `start`.
  private mutating func matches(_ index: Int, _ start: Int) -> Bool {
    guard index < fields.count else { return start == name.count }
    guard !failed.contains(index << 16 | start) else { return false }
    for end in ends(of: fields[index], from: start)
    where !splitsNumber(index, start, end) && matches(index + 1, end) {
      take(fields[index], name[start..<end])
      return true
    }
    failed.insert(index << 16 | start)
    return false
  }

  /// Whether a field of any characters takes digits of the number before or behind it: those may decide the time.
  private func splitsNumber(_ index: Int, _ start: Int, _ end: Int) -> Bool {
    guard start < end, fields[index] == .anything || fields[index] == .group else { return false }
    let isSplitBefore = index > 0 && fields[index - 1].isNumber && isDigit(start)
    let isSplitBehind = index + 1 < fields.count && fields[index + 1].isNumber && isDigit(end - 1) && isDigit(end)
    return isSplitBefore || isSplitBehind
  }

  private func isDigit(_ offset: Int) -> Bool { offset < name.count && (48...57).contains(name[offset]) }

  /// Returns the offsets where a field can end.
  private func ends(of field: NamePattern.Field, from start: Int) -> [Int] {
    let rest = name[start...]
    let digits = rest.prefix { (48...57).contains($0) }.count
    switch field {
    case .literal(let byte): return rest.first == byte ? [start + 1] : []
    case .space: return Self.lengthOfSpace(rest).map { [start + $0] } ?? []
    case .halfDay: return HalfDay.lengths(at: rest).map { start + $0 }
    case .monthName: return MonthName(at: rest)?.lengths.map { start + $0 } ?? []
    // 18 digits that begin with 6 are ticks from 1902 on.
    case .digits(.unix, _):
      let isUnix = (1...16).contains(digits) || digits == 19 || digits == 18 && rest.first == UInt8(ascii: "6")
      return isUnix ? [start + digits] : []
    case .digits(_, let counts): return counts.reversed().filter { $0 <= digits }.map { start + $0 }
    case .seconds:
      guard (1...11).contains(digits) else { return [] }
      let whole = start + digits
      let fraction = name[whole...].dropFirst().prefix { (48...57).contains($0) }.count
      let hasFraction = whole < name.count && name[whole] == UInt8(ascii: ".") && (1...18).contains(fraction)
      return hasFraction ? [whole + 1 + fraction, whole] : [whole]
    case .zone:
      if rest.first == UInt8(ascii: "Z") { return [start + 1] }
      guard let sign = rest.first, sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") else { return [] }
      return [6, 5, 3].map { start + $0 }.filter { $0 <= name.count }
    case .group:
      let end = endOfComponent(from: start)
      return start < end ? Array((start + 1...end).reversed()) : []
    // The shortest first: digits before a number belong to the number.
    case .anything: return Array(start...endOfComponent(from: start))
    }
  }

  private func endOfComponent(from start: Int) -> Int { name[start...].firstIndex(of: UInt8(ascii: "/")) ?? name.count }

  /// Returns the number of bytes of the space that a text begins with.
  static func lengthOfSpace(_ text: ArraySlice<UInt8>) -> Int? {
    if text.first == UInt8(ascii: " ") { return 1 }
    guard let first = text.first, first >= 0xC2,
      let scalar = String(decoding: text.prefix(3), as: UTF8.self).unicodeScalars.first,
      scalar.properties.generalCategory == .spaceSeparator
    else { return nil }
    return UTF8.width(scalar)
  }

  private mutating func take(_ field: NamePattern.Field, _ text: ArraySlice<UInt8>) {
    switch field {
    case .literal, .space: break
    case .anything:
      // Fields are taken from the last to the first.
      if !text.isEmpty { match.text = String(decoding: text, as: UTF8.self) + (match.text.map { "*" + $0 } ?? "") }
    case .digits(let part, _): match.digits[part] = text
    case .monthName: match.namedMonth = MonthName(at: text)?.number
    case .halfDay: match.isAfternoon = HalfDay.isAfternoon(text)
    case .seconds: match.seconds = text
    case .zone: match.zone = text
    case .group: match.group = String(decoding: text, as: UTF8.self)
    }
  }
}
