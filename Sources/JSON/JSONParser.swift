/// Parses JSON (RFC 8259), and the words NaN, Infinity and -Infinity, which some recorders write. Refuses an object with
/// two equal keys. Ignores a byte order mark before the text. Half a surrogate pair, which programs write that cut a text
/// between its halves, becomes U+FFFD.
package struct JSONParser {
  /// Maximum nesting of values.
  private static let depthLimit = 64
  /// An object of few members takes no more memory than this many.
  private static let maximumCapacity = 32
  /// U+FEFF in UTF-8.
  package static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

  private let bytes: [UInt8]
  private var position = 0
  /// Whether the text so far is that of ``JSONValue/bytes(pretty:)``. Texts with escapes are taken for others.
  private var isPlain = true
  /// A member of the outermost object, and its place with the comma before it.
  private let key: String?
  private var member: Range<Int>?
  /// The members of the last object of each depth: the next one often has as many.
  private var counts = [Int](repeating: 0, count: depthLimit + 1)

  package static func parse(_ bytes: [UInt8]) throws(JSONError) -> JSONValue {
    try parse(bytes, without: nil).value
  }

  /// Parses an object, and returns its text without a member.
  ///
  /// - Returns: `rest` is the text that ``JSONValue/bytes(pretty:)`` returns for the other members, as two parts of `bytes`; nil if the
  ///   text is written otherwise, or if the member is missing or the first one.
  package static func parse(
    _ bytes: [UInt8], without key: String?
  ) throws(JSONError) -> (value: JSONValue, rest: (ArraySlice<UInt8>, ArraySlice<UInt8>)?) {
    guard String(validating: bytes, as: UTF8.self) != nil else { throw JSONError("not UTF-8") }
    var parser = JSONParser(bytes: bytes, key: key)
    if bytes.starts(with: byteOrderMark) {
      parser.position = byteOrderMark.count
      parser.isPlain = false
    }
    let value = try parser.value(depth: 0)
    let (end, isPlain) = (parser.position, parser.isPlain)
    parser.skipSpace()
    guard parser.position == bytes.count else { throw parser.unexpected("more after the end") }
    let rest = isPlain ? parser.member.map { (bytes[..<$0.lowerBound], bytes[$0.upperBound..<end]) } : nil
    return (value, rest)
  }

  private init(bytes: [UInt8], key: String?) {
    (self.bytes, self.key) = (bytes, key)
    // A manifest has some thirty members.
    if key != nil { counts[1] = Self.maximumCapacity }
  }

  private mutating func value(depth: Int) throws(JSONError) -> JSONValue {
    guard depth < Self.depthLimit else { throw unexpected("nested more than \(Self.depthLimit) deep") }
    skipSpace()
    guard position < bytes.count else { throw unexpected("the text breaks off") }
    switch bytes[position] {
    case UInt8(ascii: "{"): return .object(try members(depth: depth + 1))
    case UInt8(ascii: "["): return .array(try elements(depth: depth + 1))
    case UInt8(ascii: "\""): return .string(try string())
    default: break
    }
    // Most values that are no texts are numbers.
    if !(UInt8(ascii: "0")...UInt8(ascii: "9") ~= bytes[position]) {
      for (word, value) in Self.words where bytes[position...].starts(with: word.utf8) {
        position += word.utf8.count
        return value
      }
    }
    return try number()
  }

  private static let words: [(String, JSONValue)] = [
    ("true", .bool(true)), ("false", .bool(false)), ("null", .null), ("NaN", .number("NaN")),
    ("Infinity", .number("Infinity")), ("-Infinity", .number("-Infinity")),
  ]

  private mutating func members(depth: Int) throws(JSONError) -> [String: JSONValue] {
    position += 1
    if take("}") { return [:] }
    var result = [String: JSONValue](minimumCapacity: min(counts[depth], Self.maximumCapacity))
    var before = position..<position
    repeat {
      skipSpace()
      guard peek("\"") else { throw unexpected("a key is missing") }
      let start = position
      let key = try string()
      let place = start + 1..<position - 1
      if isPlain { isPlain = result.isEmpty || bytes[before].lexicographicallyPrecedes(bytes[place]) }
      before = place
      guard take(":") else { throw unexpected("a colon is missing") }
      guard result.updateValue(try value(depth: depth), forKey: key) == nil else {
        position = start
        throw unexpected("a second \"\(key.prefix(40))\"")
      }
      if depth == 1, result.count > 1, key == self.key { member = start - 1..<position }
    } while take(",")
    guard take("}") else { throw unexpected("a comma or } is missing") }
    counts[depth] = result.count
    return result
  }

  private mutating func elements(depth: Int) throws(JSONError) -> [JSONValue] {
    var result: [JSONValue] = []
    position += 1
    if take("]") { return result }
    repeat { result.append(try value(depth: depth)) } while take(",")
    guard take("]") else { throw unexpected("a comma or ] is missing") }
    return result
  }

  private mutating func string() throws(JSONError) -> String {
    position += 1
    let start = position
    while position < bytes.count, bytes[position] >= 0x20, bytes[position] != UInt8(ascii: "\\") {
      position += 1
      if bytes[position - 1] == UInt8(ascii: "\"") {
        return String(decoding: bytes[start..<position - 1], as: UTF8.self)
      }
    }
    isPlain = false
    var text = Array(bytes[start..<position])
    while position < bytes.count {
      let byte = bytes[position]
      position += 1
      switch byte {
      case UInt8(ascii: "\""): return String(decoding: text, as: UTF8.self)
      case UInt8(ascii: "\\"): text += String(try escape()).utf8
      case 0..<0x20: throw unexpected("a control character in a text")
      default: text.append(byte)
      }
    }
    throw unexpected("a text breaks off")
  }

  private mutating func escape() throws(JSONError) -> Character {
    guard position < bytes.count else { throw unexpected("a text breaks off") }
    let byte = bytes[position]
    position += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Character(UnicodeScalar(byte))
    case UInt8(ascii: "b"): return "\u{8}"
    case UInt8(ascii: "f"): return "\u{C}"
    case UInt8(ascii: "n"): return "\n"
    case UInt8(ascii: "r"): return "\r"
    case UInt8(ascii: "t"): return "\t"
    case UInt8(ascii: "u"):
      var code = try hexadecimal()
      if 0xD800..<0xDC00 ~= code, bytes[position...].starts(with: "\\u".utf8) {
        let end = position
        position += 2
        let low = try hexadecimal()
        if 0xDC00..<0xE000 ~= low {
          code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
        } else {
          position = end
        }
      }
      return Character(UnicodeScalar(code) ?? "\u{FFFD}")
    default: throw unexpected("an unknown escape")
    }
  }

  private mutating func hexadecimal() throws(JSONError) -> UInt32 {
    guard position + 4 <= bytes.count,
      bytes[position..<position + 4].allSatisfy({ UnicodeScalar($0).properties.isASCIIHexDigit }),
      let code = UInt32(String(decoding: bytes[position..<position + 4], as: UTF8.self), radix: 16)
    else { throw unexpected("four hexadecimal digits are missing") }
    position += 4
    return code
  }

  private mutating func number() throws(JSONError) -> JSONValue {
    let start = position
    if peek("-") { position += 1 }
    if peek("0") { position += 1 } else { try digits() }
    if peek(".") {
      position += 1
      try digits()
    }
    if peek("e") || peek("E") {
      position += 1
      if peek("+") || peek("-") { position += 1 }
      try digits()
    }
    return .number(String(decoding: bytes[start..<position], as: UTF8.self))
  }

  private mutating func digits() throws(JSONError) {
    let start = position
    while position < bytes.count, UInt8(ascii: "0")...UInt8(ascii: "9") ~= bytes[position] { position += 1 }
    guard position > start else { throw unexpected("no value") }
  }

  private func peek(_ character: UnicodeScalar) -> Bool {
    position < bytes.count && bytes[position] == UInt8(ascii: character)
  }

  private mutating func take(_ character: UnicodeScalar) -> Bool {
    skipSpace()
    guard peek(character) else { return false }
    position += 1
    return true
  }

  private mutating func skipSpace() {
    while position < bytes.count {
      switch bytes[position] {
      case 0x20, 0x0A, 0x0D, 0x09:
        position += 1
        isPlain = false
      default: return
      }
    }
  }

  private func unexpected(_ what: String) -> JSONError {
    let before = bytes.prefix(position)
    let line = before.count { $0 == 0x0A } + 1
    let column = before.count - (before.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0) + 1
    return JSONError("not JSON: \(what) at line \(line), column \(column)")
  }
}
