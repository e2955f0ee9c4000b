// Our own JSON, because other parsers silently take the first of two equal keys (a second list of masks must not be
// lost), round numbers that we only copy, need exponential time for nested metadata, and crash on invalid UTF-8.

/// Any JSON value. A number keeps its text.
package enum JSONValue: Sendable, Equatable {
  case null
  case bool(Bool)
  case number(String)
  case string(String)
  case array([JSONValue])
  case object([String: JSONValue])

  package static func number(_ value: some FixedWidthInteger) -> JSONValue { .number(String(value)) }

  /// The value of a whole number, of up to 53 bits if it is written with a point or an exponent.
  package var integer: Int64? {
    guard case .number(let text) = self else { return nil }
    if let value = Int64(text) { return value }
    guard let value = Double(text), value.rounded() == value, value.magnitude <= 0x1p53 else { return nil }
    return Int64(value)
  }

  /// The value of a number; infinite if it is too large.
  package var double: Double? { if case .number(let text) = self { Double(text) } else { nil } }

  package var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
  package var string: String? { if case .string(let value) = self { value } else { nil } }
  package var array: [JSONValue]? { if case .array(let value) = self { value } else { nil } }
  package var object: [String: JSONValue]? { if case .object(let value) = self { value } else { nil } }

  /// Returns the object with some members replaced or added; another value unchanged.
  package func setting(_ members: [String: JSONValue]) -> JSONValue {
    object.map { .object($0.merging(members) { $1 }) } ?? self
  }

  /// Whether it is written with the same bytes. Equal values need not be: "é" has two spellings.
  package func isWritten(like other: JSONValue) -> Bool {
    switch (self, other) {
    case (.string(let one), .string(let two)): one.utf8.elementsEqual(two.utf8)
    case (.array(let one), .array(let two)): one.elementsEqual(two) { $0.isWritten(like: $1) }
    case (.object(let one), .object(let two)):
      one.count == two.count
        && one.allSatisfy { key, value in
          guard let place = two.index(forKey: key) else { return false }
          return two[place].key.utf8.elementsEqual(key.utf8) && value.isWritten(like: two[place].value)
        }
    default: self == other
    }
  }

  /// Whether it has no NaN and no infinity. The parser accepts them, for callers that check for them.
  package var isStrict: Bool {
    switch self {
    case .number(let text): !["NaN", "Infinity", "-Infinity"].contains(text)
    case .array(let values): values.allSatisfy(\.isStrict)
    case .object(let members): members.values.allSatisfy(\.isStrict)
    default: true
    }
  }
}

/// A text that is not JSON, or not the expected JSON.
package struct JSONError: Error, Equatable, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }
}

/// A kind of value, with its name for messages.
package struct JSONKind<Value> {
  let name: String
  let value: (JSONValue) -> Value?
}

extension JSONKind<Int64> { package static var integer: Self { Self(name: "a whole number") { $0.integer } } }
extension JSONKind<Bool> { package static var bool: Self { Self(name: "true or false") { $0.bool } } }
extension JSONKind<JSONValue> {
  package static var object: Self { Self(name: "an object") { $0.object == nil ? nil : $0 } }
}
extension JSONKind<[JSONValue]> { package static var array: Self { Self(name: "a list") { $0.array } } }
extension JSONKind<String> {
  package static var string: Self { Self(name: "a text") { $0.string } }

  /// A text, or a number as it is written.
  package static var scalar: Self {
    Self(name: "a text or a number") { value in
      if case .number(let text) = value { text } else { value.string }
    }
  }
}

extension JSONValue {
  /// Returns a member. Throws if it is missing or null.
  package func required<Value>(_ key: String, _ kind: JSONKind<Value>) throws(JSONError) -> Value {
    guard let value = try optional(key, kind) else { throw JSONError("no \"\(key)\"") }
    return value
  }

  /// Returns a whole number that lies in a range.
  package func required(_ key: String, in range: ClosedRange<Int64>) throws(JSONError) -> Int64 {
    let value = try required(key, .integer)
    guard range.contains(value) else { throw JSONError("\(key): out of range") }
    return value
  }

  /// Returns a member; nil if it is missing or null.
  package func optional<Value>(_ key: String, _ kind: JSONKind<Value>) throws(JSONError) -> Value? {
    guard let members = object else { throw JSONError("not an object") }
    guard let member = members[key], member != .null else { return nil }
    guard let value = kind.value(member) else { throw JSONError("\(key): not \(kind.name)") }
    return value
  }
}

// MARK: - Writing

extension JSONValue {
  /// Returns the text with sorted keys and without spaces; or, for people, with one member a line.
  package func bytes(pretty: Bool = false) -> [UInt8] {
    var output: [UInt8] = []
    write(to: &output, indent: pretty ? 0 : nil)
    return output
  }

  /// The text without line breaks.
  package var line: String { String(decoding: bytes(), as: UTF8.self) }

  private func write(to output: inout [UInt8], indent: Int?) {
    switch self {
    case .null: output += "null".utf8
    case .bool(let value): output += (value ? "true" : "false").utf8
    case .number(let text): output += text.utf8
    case .string(let text): Self.append(text, to: &output)
    case .array(let values):
      Self.write("[", "]", values, to: &output, indent) { $0.write(to: &$1, indent: $2) }
    case .object(let members):
      let sorted = members.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
      Self.write("{", "}", sorted, to: &output, indent) { member, output, indent in
        Self.append(member.key, to: &output)
        output += (indent == nil ? ":" : ": ").utf8
        member.value.write(to: &output, indent: indent)
      }
    }
  }

  private static func write<Element>(
    _ open: String, _ close: String, _ elements: [Element], to output: inout [UInt8], _ indent: Int?,
    _ element: (Element, inout [UInt8], Int?) -> Void
  ) {
    func newLine(_ depth: Int) {
      guard indent != nil else { return }
      output.append(UInt8(ascii: "\n"))
      output += repeatElement(UInt8(ascii: " "), count: 2 * depth)
    }
    output += open.utf8
    for (index, value) in elements.enumerated() {
      if index > 0 { output.append(UInt8(ascii: ",")) }
      newLine((indent ?? 0) + 1)
      element(value, &output, indent.map { $0 + 1 })
    }
    if !elements.isEmpty { newLine(indent ?? 0) }
    output += close.utf8
  }

  /// Writes a text with its quotes.
  package static func append(_ text: String, to output: inout [UInt8]) {
    output.append(UInt8(ascii: "\""))
    defer { output.append(UInt8(ascii: "\"")) }
    guard text.utf8.contains(where: { $0 < 0x20 || $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") }) else {
      output += text.utf8
      return
    }
    let digits = Array("0123456789abcdef".utf8)
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): output += [UInt8(ascii: "\\"), byte]
      case UInt8(ascii: "\n"): output += "\\n".utf8
      case 0..<0x20: output += "\\u00".utf8 + [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      default: output.append(byte)
      }
    }
  }
}
