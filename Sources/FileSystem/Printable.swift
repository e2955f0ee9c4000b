// File names may hold any character but a slash. Escaped, they can neither move a terminal's cursor nor forge a line.

extension String {
  /// The text as one line: control characters, line ends and direction overrides are escaped as in JSON, `\n` and
  /// `\u001b`. A text that is JSON stays the same JSON.
  package var oneLine: String { escaped { Self.isControl($0) } }

  /// Returns the text, cut to a number of UTF-8 bytes, for people: `…` ends a cut one.
  package func cut(to limit: Int) -> String {
    guard utf8.count > limit else { return self }
    var (kept, size) = ("", 3)
    for character in self {
      size += character.utf8.count
      if size > limit { break }
      kept.append(character)
    }
    return kept + "…"
  }

  /// Like ``oneLine``, but keeps line ends.
  package var printable: String { escaped { Self.isControl($0) && $0 != "\n" } }

  private func escaped(_ isEscaped: (Unicode.Scalar) -> Bool) -> String {
    guard unicodeScalars.contains(where: isEscaped) else { return self }
    var text = ""
    for scalar in unicodeScalars {
      if !isEscaped(scalar) {
        text.unicodeScalars.append(scalar)
      } else if scalar == "\n" {
        text += "\\n"
      } else {
        let digits = String(scalar.value, radix: 16)
        text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      }
    }
    return text
  }

  /// C0, DEL, C1, line and paragraph separators, and direction overrides: all have at most four hexadecimal digits.
  private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0..<0x20, 0x7F..<0xA0, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069: true
    default: false
    }
  }
}
