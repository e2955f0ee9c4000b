import Foundation
import Testing

@testable import Collecting
@testable import FrameBatches

@Suite struct SessionPeriodTests {
  private static func ms(_ text: String) throws -> Int64 { try #require(ISOTime.instant(in: text)) }

  /// A zone, a period, and the first instants of periods with their labels.
  struct Case: Sendable {
    let zone: String
    let period: String
    let starts: [String]

    init(_ zone: String, _ period: String, _ starts: String...) {
      (self.zone, self.period, self.starts) = (zone, period, starts)
    }
  }

  /// Days of 23, 24 and 25 hours, hours that clocks show twice or never, and the change at one minute past midnight that
  /// Newfoundland had.
  static let cases: [Case] = [
    Case(
      "Europe/Berlin", "day", "2026-10-23T22:00:00Z 2026-10-24", "2026-10-24T22:00:00Z 2026-10-25",
      "2026-10-25T23:00:00Z 2026-10-26", "2026-10-26T23:00:00Z 2026-10-27"),
    Case(
      "Europe/Berlin", "day", "2026-03-28T23:00:00Z 2026-03-29", "2026-03-29T22:00:00Z 2026-03-30",
      "2026-03-30T22:00:00Z 2026-03-31"),
    Case(
      "America/St_Johns", "day", "2026-10-31T02:30:00Z 2026-10-31", "2026-11-01T02:30:00Z 2026-11-01",
      "2026-11-02T03:30:00Z 2026-11-02"),
    Case(
      "America/St_Johns", "day", "2026-03-08T03:30:00Z 2026-03-08", "2026-03-09T02:30:00Z 2026-03-09"),
    // At 00:01 of November 7, clocks went back to 23:01 of November 6: the day had begun.
    Case(
      "America/St_Johns", "day", "2010-11-06T02:30:00Z 2010-11-06", "2010-11-07T02:30:00Z 2010-11-07",
      "2010-11-08T03:30:00Z 2010-11-08"),
    Case(
      "Europe/Berlin", "6h", "2026-10-24T22:00:00Z 2026-10-25T00", "2026-10-25T05:00:00Z 2026-10-25T06",
      "2026-10-25T11:00:00Z 2026-10-25T12", "2026-10-25T17:00:00Z 2026-10-25T18", "2026-10-25T23:00:00Z 2026-10-26T00"),
    Case(
      "Europe/Berlin", "1 hour", "2026-10-24T23:00:00Z 2026-10-25T01", "2026-10-25T00:00:00Z 2026-10-25T02",
      "2026-10-25T02:00:00Z 2026-10-25T03"),
    Case(
      "Europe/Berlin", "1h", "2026-03-29T00:00:00Z 2026-03-29T01", "2026-03-29T01:00:00Z 2026-03-29T03"),
    // The last part of a day is shorter.
    Case(
      "+05:30", "7 hours", "2026-01-08T15:30:00Z 2026-01-08T21", "2026-01-08T18:30:00Z 2026-01-09T00",
      "2026-01-09T01:30:00Z 2026-01-09T07"),
  ]

  @Test(arguments: cases) func periodsBeginByTheClocksOfTheZone(_ test: Case) throws {
    let zone = try #require(try ZoneRules(named: test.zone))
    let period = try #require(SessionPeriod(test.period, in: zone))
    let starts = try test.starts.map { line -> (ms: Int64, label: String) in
      let parts = line.split(separator: " ").map(String.init)
      return (try Self.ms(parts[0]), parts[1])
    }
    for (index, start) in starts.enumerated() {
      #expect(period.label(at: start.ms) == start.label)
      #expect(period.number(at: start.ms - 1) < period.number(at: start.ms), "\(start)")
      guard index + 1 < starts.count else { continue }
      for timeMs in stride(from: start.ms, to: starts[index + 1].ms, by: 61_001) {
        #expect(period.label(at: timeMs) == start.label, "\(timeMs)")
      }
    }
  }

  @Test(arguments: ["", "days", "0h", "24h", "6", "h", "6 minutes", "-1h", "6h ", "100h"]) func otherTextIsNoPeriod(
    text: String
  ) throws {
    #expect(SessionPeriod(text, in: try #require(try ZoneRules(named: "UTC"))) == nil)
  }

  @Test func datesOfDaysAreThoseOfTheCalendar() throws {
    let format = ISO8601DateFormatter()
    format.formatOptions = [.withFullDate]
    for day in stride(from: Int64(-800_000), to: 800_000, by: 997) {
      let date = format.string(from: Date(timeIntervalSince1970: Double(day) * 86_400))
      // The formatter follows the Julian calendar before 1582.
      if day > -141_000, day < 2_900_000 { #expect(CivilTime.date(ofDay: day) == date) }
    }
  }
}
