extension StringProtocol {
  /// Whether the text has digits only. An empty text has.
  package var isDecimal: Bool { utf8.allSatisfy { (48...57).contains($0) } }

  /// Whether the text has only hexadecimal digits, in lower case.
  package var isHexadecimal: Bool { utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) } }

  /// Whether the text has only ASCII letters, digits and some other characters.
  package func isPlain(and others: String) -> Bool {
    utf8.allSatisfy {
      (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0) || others.utf8.contains($0)
    }
  }
}
