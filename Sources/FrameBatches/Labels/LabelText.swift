// Texts of recorders, without what may be secret.

enum LabelText {
  /// Returns the first line, without the colours of a terminal, and without the queries of addresses.
  static func firstLine(of text: String) -> String {
    var (line, isEscape) = ("", false)
    for character in text.prefix(8_192) {
      if character.isNewline { break }
      if isEscape {
        isEscape = !character.isLetter
      } else if character == "\u{1B}" {
        isEscape = true
      } else {
        line.append(character)
      }
    }
    return withoutSecrets(line)
  }

  /// Removes queries and fragments from the addresses in a text.
  static func withoutSecrets(_ text: some StringProtocol) -> String {
    var result = ""
    for word in text.split(omittingEmptySubsequences: false, whereSeparator: { $0 == " " }) {
      let isAddress = word.contains("://") || word.drop { "\"'(".contains($0) }.hasPrefix("/")
      let cut = isAddress ? word.firstIndex { "?#;".contains($0) } : nil
      result += (result.isEmpty ? "" : " ") + (cut.map { "\(word[..<$0])…" } ?? String(word))
    }
    return result
  }
}
