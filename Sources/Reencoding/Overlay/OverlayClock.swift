// The text of an overlay's clock. Pure.

import FrameBatches
import ISOMedia

enum OverlayClock {
  /// Returns the capture's second with its date and offset, without the date, and without both: `2026-01-08 09:05:12 +01:00`. Where the
  /// rules of the zone end, the time is in UTC, `2040-01-08 08:05:12 Z`. The space keeps text recognition from joining the two.
  ///
  /// - Parameter timeMs: the capture, in unix milliseconds.
  static func forms(of timeMs: Int64, in zone: ZoneRules) -> [String] {
    let seconds = timeMs.flooredDivision(by: 1_000)
    let offset = zone.knownOffset(at: seconds)
    let local = seconds + (offset ?? 0)
    let days = local.flooredDivision(by: 86_400)
    let second = local - days * 86_400
    let time = "\((second / 3_600).digits(2)):\((second / 60 % 60).digits(2)):\((second % 60).digits(2))"
    let zoned = time + " " + (zone.isUTC ? "Z" : offset.map(text(ofOffset:)) ?? "Z")
    return ["\(CivilTime.date(ofDay: days)) \(zoned)", zoned, time]
  }

  private static func text(ofOffset offset: Int64) -> String {
    let minutes = abs(offset) / 60
    return "\(offset < 0 ? "-" : "+")\((minutes / 60).digits(2)):\((minutes % 60).digits(2))"
  }
}
