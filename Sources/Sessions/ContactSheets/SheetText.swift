// The texts of a contact sheet. Pure.

import ISOMedia

enum SheetText {
  /// An instant in UTC: its date and its time of day.
  package static func instant(_ ms: Int64) -> String {
    ms.dateText.replacing("T", with: " ").replacing("Z", with: "")
  }

  /// Time since the session's start.
  package static func offset(_ ms: Int64) -> String { "+" + clock(ms) }

  /// Hours, minutes, seconds and milliseconds, as WebVTT has them, too.
  package static func clock(_ ms: Int64) -> String {
    func digits(_ value: Int64, _ count: Int) -> String {
      let text = String(value)
      return String(repeating: "0", count: max(0, count - text.count)) + text
    }
    let seconds = ms / 1_000
    return "\(digits(seconds / 3_600, 2)):\(digits(seconds / 60 % 60, 2)):\(digits(seconds % 60, 2))"
      + ".\(digits(ms % 1_000, 3))"
  }

  /// How long something lasts, to the millisecond.
  static func span(_ ms: Int64) -> String {
    var seconds = String(ms / 1_000 % 60)
    if ms % 1_000 > 0 { seconds += "." + String(1_000 + ms % 1_000).dropFirst() }
    while seconds.contains("."), seconds.hasSuffix("0") { seconds.removeLast() }
    let parts = [(ms / 3_600_000, "h"), (ms / 60_000 % 60, "min")].filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
    let isWhole = ms % 60_000 == 0 && !parts.isEmpty
    return (parts + (isWhole ? [] : ["\(seconds) s"])).joined(separator: " ")
  }

  /// `1 gap`, `2 gaps`.
  package static func count(_ number: Int, _ one: String) -> String { "\(number) \(one)\(number == 1 ? "" : "s")" }

  /// - Parameter one: what a single gap is called.
  package static func gaps(_ count: Int, _ ms: Int64, one: String = "1 gap") -> String {
    switch count {
    case 0: "no gaps"
    case 1: "\(one) of \(span(ms))"
    default: "\(count) gaps, \(span(ms)) in all"
    }
  }

  /// Lines of at most so many letters, broken between words, and inside of those that are longer.
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
