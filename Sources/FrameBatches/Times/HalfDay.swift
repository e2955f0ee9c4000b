/// AM and PM, as programs of several languages write them.
enum HalfDay {
  private static let mornings = ["午前", "上午", "오전"].map { Array($0.utf8) }
  private static let afternoons = ["午後", "下午", "오후"].map { Array($0.utf8) }

  /// Returns the numbers of bytes that a text can begin with as AM or PM, the largest first.
  static func lengths(at text: ArraySlice<UInt8>) -> [Int] {
    for word in mornings + afternoons where text.starts(with: word) { return [word.count] }
    guard let first = text.first.map(lowercased), first == UInt8(ascii: "a") || first == UInt8(ascii: "p") else {
      return []
    }
    var length = 1
    if byte(text, length) == UInt8(ascii: ".") {
      length += 1
      length += NamePatternSearch.lengthOfSpace(text.dropFirst(length)) ?? 0
    }
    guard byte(text, length).map(lowercased) == UInt8(ascii: "m") else { return [] }
    length += 1
    return byte(text, length) == UInt8(ascii: ".") ? [length + 1, length] : [length]
  }

  /// Returns the first AM or PM in a text that is a word of its own.
  static func word(in text: Substring) -> Range<Substring.Index>? {
    for start in text.indices {
      guard let length = lengths(at: Array(text[start...].utf8)[...]).first,
        let end = text.utf8.index(start, offsetBy: length, limitedBy: text.endIndex),
        start == text.startIndex || !text[text.index(before: start)].isLetter
      else { continue }
      if end == text.endIndex || !text[end].isLetter { return start..<end }
    }
    return nil
  }

  static func isAfternoon(_ text: ArraySlice<UInt8>) -> Bool {
    text.first.map(lowercased) == UInt8(ascii: "p") || afternoons.contains { text.starts(with: $0) }
  }

  private static func byte(_ text: ArraySlice<UInt8>, _ offset: Int) -> UInt8? { text.dropFirst(offset).first }

  private static func lowercased(_ byte: UInt8) -> UInt8 { (65...90).contains(byte) ? byte | 32 : byte }
}
