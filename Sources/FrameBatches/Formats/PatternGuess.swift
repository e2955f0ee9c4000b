// Guesses the pattern of file names from examples. `NameAdvice` tries a pattern on all names before it advises it.

/// The parts of a name around its capture time, as text of a ``NamePattern``.
struct PatternGuess {
  private let head: String
  /// The fields of the time.
  private let time: String
  /// The same with any text between the folder of the date and the time of day; nil if there is none.
  private var looseTime: String?
  private let tail: String
  /// Whether its last digits may be a counter, and no time of day.
  private(set) var mayCount = false

  /// The widths of a date's and a time of day's digits, with their fields.
  private static let dates: [(widths: [Int], fields: [String])] = [
    ([4, 2, 2, 2, 2, 2], ["%Y", "%m", "%d", "%H", "%M", "%S"]), ([8, 6], ["%Y%m%d", "%H%M%S"]),
    ([8, 2, 2, 2], ["%Y%m%d", "%H", "%M", "%S"]), ([4, 2, 2, 6], ["%Y", "%m", "%d", "%H%M%S"]),
    ([14], ["%Y%m%d%H%M%S"]), ([8, 9], ["%Y%m%d", "%H%M%S%L"]), ([17], ["%Y%m%d%H%M%S%L"]),
  ]
  /// The same of a folder's date alone, and of a time of day alone.
  private static let days: [(widths: [Int], fields: [String])] = [([4, 2, 2], ["%Y", "%m", "%d"]), ([8], ["%Y%m%d"])]
  private static let timesOfDay: [(widths: [Int], fields: [String])] = [
    ([2, 2, 2], ["%H", "%M", "%S"]), ([6], ["%H%M%S"]), ([9], ["%H%M%S%L"]),
  ]
  /// Rare forms of dates: a run of no digits is the name of a month. Most can be read in one way, the last ones in several.
  private static let rareDates: [(widths: [Int], fields: [String])] = {
    let times: [(widths: [Int], fields: [String])] = [
      ([2, 2, 2], ["%H", "%M", "%S"]), ([1, 2, 2], ["%-H", "%M", "%S"]), ([6], ["%H%M%S"]),
    ]
    let minutes: [(widths: [Int], fields: [String])] = [([2, 2], ["%H", "%M"]), ([4], ["%H%M"])]
    let days: [(widths: [Int], fields: [String])] = [([4, 2, 2], ["%Y", "%m", "%d"]), ([8], ["%Y%m%d"])]
    let named: [(widths: [Int], fields: [String])] = [
      ([2, 0, 4], ["%d", "%b", "%Y"]), ([1, 0, 4], ["%-d", "%b", "%Y"]), ([0, 2, 4], ["%b", "%d", "%Y"]),
      ([0, 1, 4], ["%b", "%-d", "%Y"]), ([4, 0, 2], ["%Y", "%b", "%d"]),
    ]
    let other: [(widths: [Int], fields: [String])] = [
      ([4, 3], ["%Y", "%j"]), ([7], ["%Y%j"]), ([2, 2, 4], ["%d", "%m", "%Y"]), ([2, 2, 4], ["%m", "%d", "%Y"]),
      ([8], ["%d%m%Y"]), ([8], ["%m%d%Y"]), ([2, 2, 2], ["%y", "%m", "%d"]), ([2, 2, 2], ["%d", "%m", "%y"]),
      ([2, 2, 2], ["%m", "%d", "%y"]), ([6], ["%y%m%d"]), ([6], ["%d%m%y"]), ([6], ["%m%d%y"]),
    ]
    func joined(
      _ days: [(widths: [Int], fields: [String])], _ times: [(widths: [Int], fields: [String])]
    ) -> [(widths: [Int], fields: [String])] {
      days.flatMap { day in times.map { (day.widths + $0.widths, day.fields + $0.fields) } }
    }
    return joined(days, minutes) + [([12], ["%Y%m%d%H%M"])] + joined(named, times + minutes) + joined(other, times)
  }()

  /// Returns the guesses for a date in a rare form.
  static func rare(of name: String) -> [PatternGuess] {
    let stem = PictureNames.parts(of: name).stem
    let isHalfDay = NameAdvice.isHalfDay(name)
    let runs = runsAndMonths(of: stem)
    return runs.indices.flatMap { index -> [PatternGuess] in
      let rest = runs[index...]
      // Ticks of .NET.
      if rest[index].utf8.count == 18, let ticks = Int64(rest[index]),
        Limits().plausible.contains(CivilTime.unixMs(ofTicks: ticks))
      {
        return [PatternGuess(stem, [rest[index]], ["%Q"])]
      }
      return rareDates.compactMap { widths, fields in
        let found = rest.prefix(widths.count)
        guard found.count == widths.count, zip(found, widths).allSatisfy({ Self.width($0) == $1 }) else { return nil }
        let read = fields.map { field in
          guard isHalfDay else { return field }
          return ["%H", "%-H"].contains(field) ? "%-I" : field.replacing("%H", with: "%I")
        }
        var guess = PatternGuess(stem, Array(found), read, isHalfDay)
        guess.mayCount = fields.last == "%H%M" || fields.last == "%Y%m%d%H%M"
        return isHalfDay == (guess.time + guess.tail).contains("%p") ? guess : nil
      }
    }
  }

  /// The number of digits; 0 for the name of a month.
  private static func width(_ run: Substring) -> Int {
    run.utf8.first.map { (48...57).contains($0) } == true ? run.utf8.count : 0
  }

  /// Returns the runs of digits and the names of months, in order.
  private static func runsAndMonths(of stem: Substring) -> [Substring] {
    var (runs, rest) = ([Substring](), stem)
    while let first = rest.first {
      let isDigit = ("0"..."9").contains(first)
      let run = rest.prefix { isDigit ? ("0"..."9").contains($0) : $0.isLetter }
      if isDigit || MonthName(at: Array(run.utf8)[...])?.lengths.contains(run.utf8.count) == true { runs.append(run) }
      rest = rest.dropFirst(max(1, run.count))
    }
    return runs
  }

  /// Maximum number of folders between a date and the picture.
  private static let deepest = 4

  /// - Parameter name: a file's name, with its folders.
  /// - Returns: nil for a name without a date and a time of day, and without a unix time.
  init?(of name: String, limits: Limits) {
    let stem = PictureNames.parts(of: name).stem
    let isHalfDay = NameAdvice.isHalfDay(name)
    let runs: [Substring] = stem.split { !("0"..."9").contains($0) }
    for index in runs.indices {
      let rest = runs[index...]
      if rest[index].hasPrefix("20"), let date = Self.date(rest, isHalfDay) {
        self.init(stem, date.runs, date.fields, isHalfDay)
        guard isHalfDay == (time + tail).contains("%p") else { return nil }
        return
      }
      if let instant = PlainFormat.instant(ofName: String(rest[index])), rest[index].utf8.count >= 13,
        limits.instants.contains(instant)
      {
        self.init(stem, [rest[index]], ["%Q"])
        return
      }
      guard rest[index].utf8.count == 10, limits.instants.contains((Int64(rest[index]) ?? 0) * 1_000) else { continue }
      let behind = stem[rest[index].endIndex...]
      let hasFraction =
        rest.count > 1 && behind.hasPrefix(".") && behind.dropFirst().startIndex == rest[index + 1].startIndex
      let run = hasFraction ? stem[rest[index].startIndex..<rest[index + 1].endIndex] : rest[index]
      self.init(stem, [run], ["%s"])
      return
    }
    guard !isHalfDay, let guess = Self.inFolders(PictureNames.stem(of: name)) else { return nil }
    self = guess
  }

  /// Returns the guess for a date of folders and a time of day of the picture in them.
  ///
  /// - Parameter path: without the suffix.
  private static func inFolders(_ path: Substring) -> PatternGuess? {
    let slashes = path.indices.filter { path[$0] == "/" }
    guard let last = slashes.last, let time = runs(of: path[last...], timesOfDay) else { return nil }
    for depth in 1...deepest where slashes.count >= depth {
      let start =
        slashes.count == depth ? path.startIndex : path.index(after: slashes[slashes.count - 1 - depth])
      let first = slashes[slashes.count - depth]
      guard let day = runs(of: path[start..<last], days), day.runs[0].hasPrefix("20"), day.runs[0].startIndex < first
      else { continue }
      var guess = PatternGuess(path[start...], day.runs + time.runs, day.fields + time.fields)
      let between = path[day.runs[day.runs.count - 1].endIndex..<time.runs[0].startIndex]
      let parts = between.split(separator: "/", omittingEmptySubsequences: false)
      guard parts.contains(where: { !$0.isEmpty }) else { return guess }
      let loose = parts.map { $0.isEmpty ? "" : "%*" }.joined(separator: "/")
      var time = guess.time
      guard let range = time.firstRange(of: text(between)) else { return guess }
      time.replaceSubrange(range, with: loose)
      guess.looseTime = time
      return guess
    }
    return nil
  }

  /// Returns the first runs of digits of these widths, and their fields.
  private static func runs(
    of text: Substring, _ forms: [(widths: [Int], fields: [String])]
  ) -> (runs: [Substring], fields: [String])? {
    let runs: [Substring] = text.split { !("0"..."9").contains($0) }
    for index in runs.indices {
      for (widths, fields) in forms where runs[index...].prefix(widths.count).map(\.utf8.count) == widths {
        return (Array(runs[index...].prefix(widths.count)), fields)
      }
    }
    return nil
  }

  /// Returns the runs of digits that are a date and a time of day, and their fields. The hour has one digit or two.
  private static func date(
    _ runs: ArraySlice<Substring>, _ isHalfDay: Bool
  ) -> (runs: [Substring], fields: [String])? {
    for (widths, fields) in dates {
      let found = runs.prefix(widths.count)
      let hour = fields.firstIndex(of: "%H")
      let fits = zip(found, widths).enumerated().allSatisfy { index, pair in
        pair.0.utf8.count == pair.1 || index == hour && pair.0.utf8.count == 1
      }
      guard found.count == widths.count, fits else { continue }
      let isShort = hour.map { found[found.startIndex + $0].utf8.count == 1 } ?? false
      let field = isHalfDay ? (hour == nil ? "%I" : "%-I") : isShort ? "%-H" : "%H"
      return (Array(found), fields.map { $0.replacing("%H", with: field) })
    }
    return nil
  }

  private init(_ stem: Substring, _ runs: [Substring], _ fields: [String], _ isHalfDay: Bool = false) {
    var time = ""
    var start = runs[0].startIndex
    for (run, field) in zip(runs, fields) {
      time += Self.text(stem[start..<run.startIndex], isHalfDay) + field
      start = run.endIndex
    }
    (head, tail) = (Self.text(stem[..<runs[0].startIndex]), Self.text(stem[start...], isHalfDay))
    self.time = time
  }

  /// Whether the name has a date and a time of day.
  var isDate: Bool { !time.hasPrefix("%s") && !time.hasPrefix("%Q") }

  /// The pattern that reads the least; nil for a name that nobody can type.
  var strictest: NamePattern? { Self.isTypable(head + time + tail) ? NamePattern(head + time + tail) : nil }

  /// Patterns that read the name, the strictest first.
  var patterns: [NamePattern] {
    ([time] + (looseTime.map { [$0] } ?? [])).flatMap { time in
      ([head] + (head.isEmpty ? [] : ["%*"])).flatMap { head in
        tails.compactMap { Self.isTypable(head + time + $0) ? NamePattern(head + time + $0) : nil }
      }
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
    // One of the numbers behind the time may order the pictures of a second, or be its fraction.
    let runs: [Substring] = tail.split { !isDigit($0) }
    for run in runs { tails.append(tail[..<run.startIndex] + "%q" + tail[run.endIndex...]) }
    if let run = runs.first {
      let before = tail[..<run.startIndex]
      // Some programs number only the second picture of a time, and those behind it.
      if runs.count == 1, !before.isEmpty { tails.append("[\(before)%q\(tail[run.endIndex...])]") }
      tails.append("\(before)%q%*")
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
    return ["Z", "+dd:dd", "-dd:dd", "+dddd", "+dd", "-0d00", "-1d00"].first(where: matches)?.count
  }

  /// Returns the pattern of a text. Any space is a space that a person can type.
  ///
  /// - Parameter isHalfDay: whether AM or PM is a field.
  private static func text(_ literal: Substring, _ isHalfDay: Bool = false) -> String {
    if isHalfDay, let word = HalfDay.word(in: literal) {
      return text(literal[..<word.lowerBound]) + "%p" + text(literal[word.upperBound...])
    }
    return literal.unicodeScalars.map { scalar in
      "%[]".unicodeScalars.contains(scalar)
        ? "%\(scalar)" : scalar.properties.generalCategory == .spaceSeparator ? " " : "\(scalar)"
    }.joined()
  }

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
