/// The elements of XML by name. The XML of S3 has no attributes, comments or CDATA.
enum S3XML {
  /// Returns the text of the first element with a name.
  static func first(_ name: String, in text: some StringProtocol) -> String? {
    elements(name, in: text, limit: 1).first.flatMap { unescaped($0) }
  }

  /// Returns the raw contents of the elements with a name.
  static func elements(_ name: String, in text: some StringProtocol, limit: Int = .max) -> [Substring] {
    var found: [Substring] = []
    let bytes = Substring(text).utf8
    let (opening, closing) = (Array("<\(name)>".utf8), Array("</\(name)>".utf8))
    var rest = bytes[...]
    while found.count < limit, let start = rest.firstRange(of: opening) {
      rest = rest[start.upperBound...]
      guard let end = rest.firstRange(of: closing) else { break }
      found.append(Substring(rest[..<end.lowerBound]))
      rest = rest[end.upperBound...]
    }
    return found
  }

  /// - Returns: nil for invalid text.
  private static func unescaped(_ text: Substring) -> String? {
    guard text.utf8.contains(UInt8(ascii: "&")) else { return text.contains("<") ? nil : String(text) }
    var result = ""
    var rest = text
    while let sign = rest.firstIndex(of: "&") {
      result += rest[..<sign]
      guard let end = rest[sign...].firstIndex(of: ";") else { return nil }
      guard let scalar = scalar(rest[rest.index(after: sign)..<end]) else { return nil }
      result.unicodeScalars.append(scalar)
      rest = rest[rest.index(after: end)...]
    }
    return result + rest
  }

  private static func scalar(_ name: Substring) -> UnicodeScalar? {
    switch name {
    case "amp": "&"
    case "lt": "<"
    case "gt": ">"
    case "quot": "\""
    case "apos": "'"
    default:
      if name.hasPrefix("#x") {
        UInt32(name.dropFirst(2), radix: 16).flatMap(UnicodeScalar.init)
      } else if name.hasPrefix("#") {
        UInt32(name.dropFirst()).flatMap(UnicodeScalar.init)
      } else {
        nil
      }
    }
  }
}
