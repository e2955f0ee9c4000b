// The list of ffmpeg's concat demuxer (ffmpeg-formats(1), "concat"): `file` and `duration`, in the quotes of `av_get_token`.

import FileSystem

/// Pictures with the times for which each is shown.
struct ConcatList {
  private(set) var entries: [TimeList.Entry] = []
  private(set) var faults: [TimeList.Fault] = []
  /// The end of the last picture; nil if the list does not tell it.
  private(set) var endMs: Int64?

  /// The longest film: 100 years, in nanoseconds.
  private static let longest: Int64 = 100 * 366 * 86_400 * 1_000_000_000

  /// Whether lines are such a list: by its first line, or because all lines begin with its words.
  static func isOne(_ lines: [TimeListLine]) -> Bool {
    guard let first = lines.first else { return false }
    let words = ["ffconcat", "file", "duration", "inpoint", "outpoint", "option", "stream"]
    return first.text.hasPrefix("ffconcat version")
      || lines.allSatisfy { words.contains(String($0.text.prefix { !$0.isWhitespace })) }
  }

  init(_ lines: [TimeListLine]) throws(TimeListError) {
    // Nanoseconds from the first picture. All durations are rounded at once, so that errors do not add up.
    var now: Int64 = 0
    var open: (line: Int, file: String, hasDuration: Bool, isRepeated: Bool)?
    for line in lines {
      let word = line.text.prefix { !$0.isWhitespace }
      let rest = line.text.dropFirst(word.count).drop(while: \.isWhitespace)
      switch word {
      case "file":
        let file = Self.unquoted(rest)
        let path = file.hasPrefix("file:") ? String(file.dropFirst(5)) : file
        if let open, !open.hasDuration {
          throw TimeListError(
            cause:
              "line \(open.line): no duration of '\(open.file.shortened(to: 255))'; only the last file may have none")
        }
        // The last picture is mostly named twice, because ffmpeg ignores the last duration otherwise.
        open = (line.number, path, false, entries.last?.file == path)
        guard open?.isRepeated == false else { continue }
        entries.append(
          TimeList.Entry(line: line.number, file: path, time: NamedTime(exact: Self.milliseconds(now))))
      case "duration":
        guard open?.hasDuration == false, let duration = Self.nanoseconds(rest), duration <= Self.longest - now else {
          throw TimeListError(cause: "line \(line.number): '\(line.text.prefix(80))' is no duration of a file")
        }
        now += duration
        open?.hasDuration = true
        endMs = Self.milliseconds(now)
      case "ffconcat": continue
      default: faults.append(TimeList.Fault(line: line.number, reason: "'\(word.prefix(40))' is ignored"))
      }
    }
    if let open, !open.hasDuration, !open.isRepeated { endMs = nil }
    guard !entries.isEmpty else { throw TimeListError(cause: "it names no file") }
  }

  private static func milliseconds(_ nanoseconds: Int64) -> Int64 { (nanoseconds + 500_000) / 1_000_000 }

  /// Reads the rest of a line as a name: text in quotes is taken as it is, and a backslash takes the next character as it is.
  private static func unquoted(_ text: Substring) -> String {
    var name = ""
    var isQuoted = false
    var rest = text
    while rest.last?.isWhitespace == true { rest.removeLast() }
    while let character = rest.popFirst() {
      switch character {
      case "'": isQuoted.toggle()
      case "\\" where !isQuoted: if let next = rest.popFirst() { name.append(next) }
      default: name.append(character)
      }
    }
    return name
  }

  /// Reads seconds with decimals, `HH:MM:SS.mmm`, or a number with `s`, `ms` or `us` behind it (ffmpeg-utils(1), "Time duration").
  private static func nanoseconds(_ text: Substring) -> Int64? {
    let text = text.prefix { !$0.isWhitespace }
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    if parts.count > 1 {
      guard parts.count <= 3, let seconds = Decimal(parts[parts.count - 1])?.scaled(by: 9) else { return nil }
      let whole = parts.dropLast().map { Int64($0) }
      guard whole.allSatisfy({ (0...100_000).contains($0 ?? -1) }), seconds <= 60_000_000_000 else { return nil }
      return whole.reduce(0) { $0 * 60 + ($1 ?? 0) } * 60 * 1_000_000_000 + seconds
    }
    for (unit, digits) in [("ms", 6), ("us", 3), ("s", 9), ("", 9)] where text.hasSuffix(unit) {
      return Decimal(text.dropLast(unit.count))?.scaled(by: digits)
    }
    return nil
  }
}
