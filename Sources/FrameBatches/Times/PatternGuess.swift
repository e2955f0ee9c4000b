// Guesses the pattern of file names from examples. `NameAdvice` tries a pattern on all names before it advises it.

/// The parts of a name around its capture time, as text of a ``NamePattern``.
struct PatternGuess {
  private let head: String
  /// The fields of the time.
  private let time: String
  private let tail: String

  /// The widths of a date's and a time of day's digits, with their fields.
  private static let dates: [(widths: [Int], fields: [String])] = [
    ([4, 2, 2, 2, 2, 2], ["%Y", "%m", "%d", "%H", "%M", "%S"]), ([8, 6], ["%Y%m%d", "%H%M%S"]),
    ([8, 2, 2, 2], ["%Y%m%d", "%H", "%M", "%S"]), ([4, 2, 2, 6], ["%Y", "%m", "%d", "%H%M%S"]),
    ([14], ["%Y%m%d%H%M%S"]),
  ]

  /// - Parameter name: a file's name.
  /// - Returns: nil for a name without a date and a time of day, and without a unix time.
  init?(of name: String, limits: Limits) {
    let stem = NamedTimesFormat.parts(of: name).stem
    let runs: [Substring] = stem.split { !("0"..."9").contains($0) }
    for index in runs.indices {
      let rest = runs[index...]
      if rest[index].hasPrefix("20"),
        let form = Self.dates.first(where: { rest.prefix($0.widths.count).map(\.utf8.count) == $0.widths })
      {
        self.init(stem, Array(rest.prefix(form.widths.count)), form.fields)
        return
      }
      let unix = Int64(rest[index]) ?? 0
      if rest[index].utf8.count == 13, limits.instants.contains(unix) {
        self.init(stem, [rest[index]], ["%Q"])
        return
      }
      guard rest[index].utf8.count == 10, limits.instants.contains(unix * 1_000) else { continue }
      let behind = stem[rest[index].endIndex...]
      let hasFraction =
        rest.count > 1 && behind.hasPrefix(".") && behind.dropFirst().startIndex == rest[index + 1].startIndex
      let run = hasFraction ? stem[rest[index].startIndex..<rest[index + 1].endIndex] : rest[index]
      self.init(stem, [run], ["%s"])
      return
    }
    return nil
  }

  private init(_ stem: Substring, _ runs: [Substring], _ fields: [String]) {
    var time = ""
    var start = runs[0].startIndex
    for (run, field) in zip(runs, fields) {
      time += Self.text(stem[start..<run.startIndex]) + field
      start = run.endIndex
    }
    (head, tail) = (Self.text(stem[..<runs[0].startIndex]), Self.text(stem[start...]))
    self.time = time
  }

  /// Whether the name has a date and a time of day.
  var isDate: Bool { time.hasPrefix("%Y") }

  /// Patterns that read the name, the strictest first.
  var patterns: [NamePattern] {
    ([head] + (head.isEmpty ? [] : ["%*"])).flatMap { head in
      tails.compactMap { Self.isTypable(head + time + $0) ? NamePattern(head + time + $0) : nil }
    }
  }

  private var tails: [String] {
    var tails: [String] = []
    let isDigit: (Character) -> Bool = { ("0"..."9").contains($0) }
    if isDate {
      var (read, rest) = ("", tail[...])
      if let first = rest.first, ".,".contains(first) {
        let digits = rest.dropFirst().prefix(while: isDigit)
        if !digits.isEmpty { (read, rest) = ("\(first)%f", rest.dropFirst(1 + digits.count)) }
      }
      if let zone = Self.zone(at: rest) { tails.append(read + "%z" + rest.dropFirst(zone)) }
      if !read.isEmpty { tails.append(read + rest) }
    }
    tails.append(tail)
    if let end = tail.lastIndex(where: isDigit) {
      let start = tail[...end].lastIndex { !isDigit($0) }.map { tail.index(after: $0) } ?? tail.startIndex
      tails.append(tail[..<start] + "%q" + tail[tail.index(after: end)...])
    }
    return tails + ["%*"]
  }

  /// Returns the length of the zone that a text begins with; nil if it begins with none. `-0001` may count pictures, so that a
  /// negative offset without a colon has to be of whole hours.
  private static func zone(at text: Substring) -> Int? {
    func matches(_ shape: String) -> Bool {
      guard text.count >= shape.count else { return false }
      let fits = zip(text, shape).allSatisfy { $1 == "d" ? ("0"..."9").contains($0) : $0 == $1 }
      return fits && text.dropFirst(shape.count).first.map { !$0.isLetter && !$0.isNumber } ?? true
    }
    return ["Z", "+dd:dd", "-dd:dd", "+dddd", "-0d00", "-1d00"].first(where: matches)?.count
  }

  private static func text(_ literal: Substring) -> String { String(literal.replacing("%", with: "%%")) }

  /// Whether a person can type and see each character.
  private static func isTypable(_ text: String) -> Bool {
    text.unicodeScalars.allSatisfy { scalar in
      switch scalar.properties.generalCategory {
      case .control, .format, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator: false
      case .spaceSeparator: scalar == " "
      default: true
      }
    }
  }
}
