// The pattern of file names that carry a capture time: text, and fields that begin with a percent sign as in strftime(3).

/// A pattern of file names, without the suffix.
package struct NamePattern: Sendable, Equatable, CustomStringConvertible {
  /// A part of a name.
  private enum Field: Equatable {
    case literal(UInt8)
    case digits(Part, ClosedRange<Int>)
    /// Unix seconds, with or without a fraction.
    case seconds
    /// `Z`, `+01:00`, `+0100` or `+01`.
    case zone
    /// One or more characters that become the session, or its key.
    case group
    /// Any characters, or none.
    case anything
  }

  /// The numbers of a name.
  enum Part: Hashable {
    case year, month, day, hour, minute, second
    /// Digits behind the second's point.
    case fraction
    case unixMilliseconds
    /// Orders the frames of a second.
    case sequence
  }

  /// The capture time and the other fields of a name.
  struct Match {
    fileprivate(set) var digits: [Part: ArraySlice<UInt8>] = [:]
    fileprivate(set) var seconds: ArraySlice<UInt8>?
    fileprivate(set) var zone: ArraySlice<UInt8>?
    fileprivate(set) var group: String?

    func number(_ part: Part) -> Int64? { digits[part].flatMap { Int64(String(decoding: $0, as: UTF8.self)) } }
  }

  package let description: String
  private let fields: [Field]

  /// The fields, for help and messages.
  package static let rule =
    "use %Y %m %d %H %M %S, %s (unix seconds), %Q (unix milliseconds), %L (milliseconds), %f (fraction), %z (zone), %q (sequence), %g (session), %* (anything), %%"

  /// - Returns: nil for a pattern with an unknown field, or without a time.
  package init?(_ text: String) {
    description = text
    var fields: [Field] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        fields.append(.literal(byte))
        continue
      }
      guard let letter = rest.popFirst(), let field = Self.field(letter) else { return nil }
      fields.append(field)
    }
    // A field that occurs twice could have two values.
    let named = fields.compactMap { if case .digits(let part, _) = $0 { part } else { nil } }
    let once = [.seconds, .zone, .group].map { field in fields.count { $0 == field } }
    guard Set(named).count == named.count, once.allSatisfy({ $0 <= 1 }) else { return nil }
    guard fields.count <= 255 else { return nil }
    self.fields = fields
    let date: [Part] = [.year, .month, .day, .hour, .minute, .second]
    let has = { part in fields.contains { if case .digits(part, _) = $0 { true } else { false } } }
    let times = [fields.contains(.seconds), has(.unixMilliseconds), date.allSatisfy(has)]
    guard times.count(where: { $0 }) == 1 else { return nil }
    // Refuse an incomplete date.
    guard times[2] || !(date + [.fraction]).contains(where: has) && !fields.contains(.zone) else { return nil }
  }

  private static func field(_ letter: UInt8) -> Field? {
    switch UnicodeScalar(letter) {
    case "Y": .digits(.year, 4...4)
    case "m": .digits(.month, 2...2)
    case "d": .digits(.day, 2...2)
    case "H": .digits(.hour, 2...2)
    case "M": .digits(.minute, 2...2)
    case "S": .digits(.second, 2...2)
    case "L": .digits(.fraction, 3...3)
    case "f": .digits(.fraction, 1...9)
    case "Q": .digits(.unixMilliseconds, 1...16)
    case "q": .digits(.sequence, 1...18)
    case "s": .seconds
    case "z": .zone
    case "g": .group
    case "*": .anything
    case "%": .literal(letter)
    default: nil
    }
  }

  /// Whether names contain a local time without its zone.
  var needsZone: Bool {
    !fields.contains(.zone) && fields.contains { if case .digits(.second, _) = $0 { true } else { false } }
  }

  /// Whether names contain the hour of a local time.
  var hasHours: Bool { fields.contains { if case .digits(.hour, _) = $0 { true } else { false } } }

  /// Reads a name.
  ///
  /// - Parameter name: without its suffix; at most 255 bytes.
  /// - Returns: nil for a name of another pattern.
  func match(_ name: some StringProtocol) -> Match? {
    let name = Array(name.utf8)
    guard name.count <= 255 else { return nil }
    var search = Search(fields: fields, name: name)
    return search.match(0, 0) ? search.found : nil
  }

  /// Tries all lengths of each field, and each field at each offset only once.
  private struct Search {
    let fields: [Field]
    let name: [UInt8]
    var found = Match()
    private var failed: Set<Int> = []

    init(fields: [Field], name: [UInt8]) {
      self.fields = fields
      self.name = name
    }

    /// Whether the fields from `index` match the name from `start`.
    mutating func match(_ index: Int, _ start: Int) -> Bool {
      guard index < fields.count else { return start == name.count }
      guard !failed.contains(index << 8 | start) else { return false }
      for end in ends(of: fields[index], from: start) where match(index + 1, end) {
        take(fields[index], name[start..<end])
        return true
      }
      failed.insert(index << 8 | start)
      return false
    }

    /// Returns the offsets where a field can end.
    private func ends(of field: Field, from start: Int) -> [Int] {
      let rest = name[start...]
      let digits = rest.prefix { (48...57).contains($0) }.count
      switch field {
      case .literal(let byte): return rest.first == byte ? [start + 1] : []
      case .digits(_, let counts):
        return counts.reversed().filter { $0 <= digits }.map { start + $0 }
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
      case .group: return start < name.count ? Array((start + 1...name.count).reversed()) : []
      // The shortest first: digits before a number belong to the number.
      case .anything: return Array(start...name.count)
      }
    }

    private mutating func take(_ field: Field, _ text: ArraySlice<UInt8>) {
      switch field {
      case .literal, .anything: break
      case .digits(let part, _): found.digits[part] = text
      case .seconds: found.seconds = text
      case .zone: found.zone = text
      case .group: found.group = String(decoding: text, as: UTF8.self)
      }
    }
  }
}
