// The members of a file of JSON that a report to hand on keeps: all others are dropped and counted, those of later versions, too.

import JSON

/// The part of a value that a report keeps.
indirect enum AllowedValue: Sendable {
  /// A whole number.
  case integer
  /// Any finite number.
  case number
  case bool
  /// 64 hexadecimal digits.
  case digest
  /// One of the program's own words; any other text is a name.
  case word(Set<String>)
  /// A text of a form that no name has; any other text is a name.
  case form(@Sendable (String) -> Bool)
  /// A name of the user: its stand-in.
  case name
  /// A message: its words are those of the program.
  case message
  /// The length of a text in bytes, or the number of members or entries.
  case size
  /// A member of the program that tells a reader nothing, or that would allow to guess a name. It does not count as unknown.
  case hidden
  case list(AllowedValue)
  case object([String: AllowedValue])
}

/// Keeps the allowed parts of a session or a batch, with one set of stand-ins.
struct Redaction {
  var names: Pseudonyms
  /// The number of members that are not kept: they are unknown, or not what they should be.
  private(set) var dropped = 0

  init(names: Pseudonyms) { self.names = names }

  /// Returns what is kept of a value; nil if nothing is.
  mutating func kept(_ json: JSONValue, as rule: AllowedValue) -> JSONValue? {
    if json == .null, case .hidden = rule { return nil }
    if json == .null { return .null }
    switch rule {
    case .hidden: return nil
    case .size: return .number(Self.size(of: json))
    default: break
    }
    guard let value = matching(json, rule) else {
      dropped += 1
      return nil
    }
    return value
  }

  private mutating func matching(_ json: JSONValue, _ rule: AllowedValue) -> JSONValue? {
    switch rule {
    case .integer: return json.integer.map { .number($0) }
    case .number: return json.double.flatMap { $0.isFinite ? .number("\($0)") : nil }
    case .bool: return json.bool.map { .bool($0) }
    case .digest: return json.string.map { Self.isHexadecimal($0, digits: 64) } == true ? json : nil
    case .word(let words): return json.string.flatMap { words.contains($0) ? .string($0) : .string(names.name($0)) }
    case .form(let holds): return json.string.map { .string(holds($0) ? $0 : names.name($0)) }
    case .name: return json.string.map { .string(names.name($0)) }
    case .message: return json.string.map { .string(names.sentence($0)) }
    case .list(let rule):
      guard let entries = json.array else { return nil }
      return .array(entries.compactMap { kept($0, as: rule) })
    case .object(let rules):
      guard let members = json.object else { return nil }
      var all: [String: JSONValue] = [:]
      // In an order, so that equal files have equal stand-ins.
      for (key, value) in members.sorted(by: { $0.key < $1.key }) {
        guard let rule = rules[key] else {
          dropped += 1
          continue
        }
        all[key] = kept(value, as: rule)
      }
      return .object(all)
    case .size, .hidden: return nil
    }
  }

  /// Whether it is a number of so many hexadecimal digits.
  static func isHexadecimal(_ text: some StringProtocol, digits: Int) -> Bool {
    text.utf8.count == digits && text.utf8.allSatisfy { "0123456789abcdefABCDEF".utf8.contains($0) }
  }

  /// Whether it is a version: numbers with points between them.
  static func isVersion(_ text: String) -> Bool {
    text.utf8.count <= 20
      && text.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { part in
        !part.isEmpty && part.utf8.allSatisfy { (48...57).contains($0) }
      }
  }

  private static func size(of json: JSONValue) -> Int {
    switch json {
    case .string(let text): text.utf8.count
    case .array(let entries): entries.count
    case .object(let members): members.count
    default: 1
    }
  }
}
