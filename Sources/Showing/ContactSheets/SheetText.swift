// The texts of a contact sheet. Pure.

import ISOMedia

enum SheetText {
  /// Returns the date and the time of day in UTC.
  static func instant(_ ms: Int64) -> String {
    ms.dateText.replacing("T", with: " ").replacing("Z", with: "")
  }

  /// Returns a duration, exact to the millisecond.
  static func span(_ ms: Int64) -> String {
    var seconds = (ms % 60_000).secondsText
    while seconds.hasSuffix("0") { seconds.removeLast() }
    if seconds.hasSuffix(".") { seconds.removeLast() }
    let parts = [(ms / 3_600_000, "h"), (ms / 60_000 % 60, "min")].filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
    let isWhole = ms % 60_000 == 0 && !parts.isEmpty
    return (parts + (isWhole ? [] : ["\(seconds) s"])).joined(separator: " ")
  }

  /// - Parameter one: the text for a single gap.
  static func gaps(_ count: Int, _ ms: Int64, one: String = "1 gap") -> String {
    switch count {
    case 0: "no gaps"
    case 1: "\(one) of \(span(ms))"
    default: "\(count) gaps, \(span(ms)) in all"
    }
  }

  /// Returns lines of at most `columns` letters, broken between words, and inside longer words.
  static func wrap(_ text: String, columns: Int) -> [String] {
    let columns = max(1, columns)
    var lines: [String] = []
    var line = ""
    for word in text.split(separator: " ") {
      var word = word
      if !line.isEmpty, line.count + 1 + word.count > columns {
        lines.append(line)
        line = ""
      }
      while word.count > columns {
        lines.append(String(word.prefix(columns)))
        word = word.dropFirst(columns)
      }
      line += line.isEmpty ? String(word) : " " + word
    }
    return line.isEmpty ? lines : lines + [line]
  }
}
