/// A date and a time of day in the Gregorian calendar.
package struct CivilTime {
  /// The time as if it were UTC, in unix seconds.
  let seconds: Int64

  /// - Returns: nil for a day or a time that does not exist.
  package init?(year: Int64, month: Int64, day: Int64, hour: Int64 = 0, minute: Int64 = 0, second: Int64 = 0) {
    guard (1970...9999).contains(year), (1...12).contains(month), (0..<24).contains(hour), (0..<60).contains(minute),
      (0..<60).contains(second), (1...Self.length(ofMonth: month, year)).contains(day)
    else { return nil }
    seconds = Self.days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second
  }

  /// - Parameter yearDay: 1 for the first of January.
  /// - Returns: nil for a day or a time that does not exist.
  init?(year: Int64, yearDay: Int64, hour: Int64, minute: Int64, second: Int64) {
    guard let first = CivilTime(year: year, month: 1, day: 1, hour: hour, minute: minute, second: second),
      (1...Self.days(year + 1, 1, 1) - Self.days(year, 1, 1)).contains(yearDay)
    else { return nil }
    seconds = first.seconds + (yearDay - 1) * 86_400
  }

  /// Converts ticks of .NET: 100 ns from the first of January of the year 1.
  ///
  /// - Returns: unix milliseconds, rounded.
  static func unixMs(ofTicks ticks: Int64) -> Int64 {
    (ticks + days(1, 1, 1) * 864_000_000_000).roundedDivision(by: 10_000)
  }

  static func length(ofMonth month: Int64, _ year: Int64) -> Int64 {
    month == 12 ? 31 : days(year, month + 1, 1) - days(year, month, 1)
  }

  /// The day's number, counted from 1970-01-01. The year begins in March, so that a leap day is its last.
  static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
    let shifted = year - (month <= 2 ? 1 : 0)
    let yearDay = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    return shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + yearDay - 719_468
  }
}

extension CivilTime {
  /// The date of a day, `2026-01-08`.
  ///
  /// - Parameter days: the day's number, counted from 1970-01-01.
  package static func date(ofDay days: Int64) -> String {
    // Eras of 400 years that begin on a first of March.
    let shifted = days + 719_468
    let era = shifted.flooredDivision(by: 146_097)
    let eraDay = shifted - era * 146_097
    let eraYear = (eraDay - eraDay / 1_460 + eraDay / 36_524 - eraDay / 146_096) / 365
    let yearDay = eraDay - (365 * eraYear + eraYear / 4 - eraYear / 100)
    let shiftedMonth = (5 * yearDay + 2) / 153
    let day = yearDay - (153 * shiftedMonth + 2) / 5 + 1
    let month = shiftedMonth + (shiftedMonth < 10 ? 3 : -9)
    let year = eraYear + era * 400 + (month <= 2 ? 1 : 0)
    return [(year, 4), (month, 2), (day, 2)].map { number, width in
      let digits = String(number)
      return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }.joined(separator: "-")
  }
}

extension Int64 {
  /// The quotient, rounded down.
  package func flooredDivision(by divisor: Int64) -> Int64 {
    self / divisor - (self % divisor < 0 ? 1 : 0)
  }

  /// The quotient of a number that is not negative, rounded to the nearest whole number.
  func roundedDivision(by divisor: Int64) -> Int64 { self / divisor + (self % divisor >= divisor / 2 ? 1 : 0) }
}
