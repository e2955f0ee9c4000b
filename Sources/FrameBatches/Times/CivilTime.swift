/// A date and a time of day in the Gregorian calendar.
struct CivilTime {
  /// The time as if it were UTC, in unix seconds.
  let seconds: Int64

  /// - Returns: nil for a day or a time that does not exist.
  init?(year: Int64, month: Int64, day: Int64, hour: Int64, minute: Int64, second: Int64) {
    guard (1970...9999).contains(year), (1...12).contains(month), (0..<24).contains(hour), (0..<60).contains(minute),
      (0..<60).contains(second), (1...Self.length(ofMonth: month, year)).contains(day)
    else { return nil }
    seconds = Self.days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second
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

extension Int64 {
  /// The quotient, rounded down.
  func flooredDivision(by divisor: Int64) -> Int64 {
    self / divisor - (self % divisor < 0 ? 1 : 0)
  }

  /// The quotient of a number that is not negative, rounded to the nearest whole number.
  func roundedDivision(by divisor: Int64) -> Int64 { self / divisor + (self % divisor >= divisor / 2 ? 1 : 0) }
}
