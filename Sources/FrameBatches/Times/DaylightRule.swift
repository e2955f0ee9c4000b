/// Summer time by rule, as POSIX.1 writes it in `TZ`: `CET-1CEST,M3.5.0,M10.5.0/3`.
struct DaylightRule: Equatable {
  /// A day of the year: the `week`th (5: the last) `weekday` (0: Sunday) of a month, at a local time in seconds.
  private struct Change: Equatable {
    let month: Int64
    let week: Int64
    let weekday: Int64
    let seconds: Int64

    /// Returns the instant in unix seconds, where clocks are `offset` seconds ahead of UTC.
    func instant(in year: Int64, offset: Int64) -> Int64 {
      let first = CivilTime.days(year, month, 1)
      // 1970-01-01 was a Thursday.
      let skip = (weekday - (first + 4) % 7 + 7) % 7
      var day = first + skip + (week - 1) * 7
      if day >= first + CivilTime.length(ofMonth: month, year) { day -= 7 }
      return day * 86_400 + seconds - offset
    }
  }

  private let standard: Int64
  private let summer: Int64
  private let changes: (start: Change, end: Change)?

  var offsets: [Int64] { [standard, summer] }

  init?(_ text: String) {
    let parts = text.split(separator: ",", omittingEmptySubsequences: false)
    guard parts.count == 1 || parts.count == 3, let (_, offset, rest) = Self.abbreviated(parts[0]), let offset else {
      return nil
    }
    standard = -offset
    guard !rest.isEmpty else {
      (summer, changes) = (standard, nil)
      return
    }
    guard let (_, summerOffset, tail) = Self.abbreviated(rest), tail.isEmpty, parts.count == 3,
      let start = Self.change(parts[1]), let end = Self.change(parts[2])
    else { return nil }
    summer = summerOffset.map { -$0 } ?? standard + 3_600
    changes = (start, end)
  }

  static func == (one: DaylightRule, other: DaylightRule) -> Bool {
    one.offsets == other.offsets && one.changes?.start == other.changes?.start
      && one.changes?.end == other.changes?.end
  }

  func offset(at instant: Int64) -> Int64 {
    guard let changes else { return standard }
    let year = CivilTime.year(ofDay: (instant + standard).flooredDivision(by: 86_400))
    let start = changes.start.instant(in: year, offset: standard)
    let end = changes.end.instant(in: year, offset: summer)
    let isSummer = start < end ? (start..<end).contains(instant) : !(end..<start).contains(instant)
    return isSummer ? summer : standard
  }

  /// Splits a text into a zone's abbreviation, its offset in seconds west of Greenwich (nil if there is none), and the rest.
  private static func abbreviated(_ text: Substring) -> (name: Substring, offset: Int64?, rest: Substring)? {
    let isQuoted = text.hasPrefix("<")
    let name = isQuoted ? text.prefix { $0 != ">" } : text.prefix { $0.isLetter }
    guard name.count >= 3 else { return nil }
    let rest = text.dropFirst(name.count + (isQuoted ? 1 : 0))
    let digits = rest.prefix { $0.isNumber || "+-:".contains($0) }
    if digits.isEmpty { return (name, nil, rest) }
    guard let seconds = time(digits) else { return nil }
    return (name, seconds, rest.dropFirst(digits.count))
  }

  /// `[+-]hh[:mm[:ss]]` in seconds.
  private static func time(_ text: Substring) -> Int64? {
    let parts = text.drop { "+-".contains($0) }.split(separator: ":", omittingEmptySubsequences: false)
    let numbers = parts.compactMap { Int64($0) }
    guard (1...3).contains(parts.count), numbers.count == parts.count, numbers.allSatisfy({ (0...167).contains($0) })
    else { return nil }
    let seconds = zip(numbers, [3_600, 60, 1]).reduce(0) { $0 + $1.0 * $1.1 }
    return text.hasPrefix("-") ? -seconds : seconds
  }

  /// `Mm.w.d[/time]`.
  private static func change(_ text: Substring) -> Change? {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    let numbers = parts[0].dropFirst().split(separator: ".").compactMap { Int64($0) }
    guard parts[0].hasPrefix("M"), numbers.count == 3, (1...12).contains(numbers[0]), (1...5).contains(numbers[1]),
      (0...6).contains(numbers[2]), parts.count <= 2, let seconds = parts.count == 2 ? time(parts[1]) : 7_200
    else { return nil }
    return Change(month: numbers[0], week: numbers[1], weekday: numbers[2], seconds: seconds)
  }
}
