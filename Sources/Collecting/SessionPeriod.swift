import FrameBatches

/// The time of the pictures of one session: a day, or some hours, by the clocks of a zone.
package struct SessionPeriod: Sendable, Equatable {
  /// Hours of a period; 24 for a day. The last period of a day is shorter if the hours do not divide it.
  private let hours: Int64
  private let zone: ZoneRules

  /// The forms that ``init(_:in:)`` reads, for a message.
  package static let rule = "write day, or hours from 1 to 23, such as 6h"

  /// - Parameter text: `day`, `6h` or `6 hours`.
  /// - Returns: nil for any other text.
  package init?(_ text: String, in zone: ZoneRules) {
    self.zone = zone
    if text == "day" {
      hours = 24
      return
    }
    let digits = text.prefix { ("0"..."9").contains($0) }
    guard digits.utf8.count <= 2, let hours = Int64(digits), (1...23).contains(hours),
      ["h", "hour", "hours"].contains(text.dropFirst(digits.count).drop { $0 == " " })
    else { return nil }
    self.hours = hours
  }

  /// Returns the number of the period in which a picture was captured. Numbers rise with time: an hour that clocks show twice is in
  /// one period.
  func number(at timeMs: Int64) -> Int64 {
    let local = zone.latestLocal(at: timeMs.flooredDivision(by: 1_000))
    let day = local.flooredDivision(by: 86_400)
    return day * 24 + (local - day * 86_400) / 3_600 / hours * hours
  }

  /// Returns the end of the names of a period's sessions: `2026-11-25`, or `2026-11-25T06` for hours.
  func label(at timeMs: Int64) -> String {
    let number = number(at: timeMs)
    let day = number.flooredDivision(by: 24)
    let hour = number - day * 24
    return CivilTime.date(ofDay: day) + (hours == 24 ? "" : hour < 10 ? "T0\(hour)" : "T\(hour)")
  }
}
