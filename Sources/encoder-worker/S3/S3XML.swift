// The XML of S3, as far as it is needed: the text of elements, by their names. Not a reader of XML as such: there
// are no attributes, comments or CDATA in what S3 sends, and what it cannot read has no elements.

enum S3XML {
  /// The first element of this name.
  static func first(_ name: String, in text: some StringProtocol) -> String? {
    elements(name, in: text, most: 1).first.flatMap { unescaped($0) }
  }

  /// The raw contents of the elements of a name.
  static func elements(_ name: String, in text: some StringProtocol, most: Int = .max) -> [Substring] {
    var found: [Substring] = []
    let bytes = Substring(text).utf8
    let (opening, closing) = (Array("<\(name)>".utf8), Array("</\(name)>".utf8))
    var rest = bytes[...]
    while found.count < most, let start = rest.firstRange(of: opening) {
      rest = rest[start.upperBound...]
      guard let end = rest.firstRange(of: closing) else { break }
      found.append(Substring(rest[..<end.lowerBound]))
      rest = rest[end.upperBound...]
    }
    return found
  }

  /// - Returns: nil where it is no text.
  static func unescaped(_ text: Substring) -> String? {
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
