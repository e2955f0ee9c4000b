// Names of strangers may hold anything but a slash: nothing of them is to move a cursor, or to look like another line.

extension String {
  /// One line that does nothing to a terminal: control characters, ends of lines and what turns the direction of text are
  /// written as in JSON, `\n` and `\u001b`. A text that is JSON stays the same JSON.
  var oneLine: String { escaped { Self.isSilent($0) } }

  /// The same, but for the ends of lines.
  var printable: String { escaped { Self.isSilent($0) && $0 != "\n" } }

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

  /// C0, DEL, C1, the separators of lines and paragraphs, and overrides of direction; all of at most four digits.
  private static func isSilent(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0..<0x20, 0x7F..<0xA0, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069: true
    default: false
    }
  }
}
