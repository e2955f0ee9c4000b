/// The capture time in a file's name.
struct NamedTime: Sendable, Equatable {
  /// The instants in unix milliseconds, in order: none if clocks never showed the time, two if they showed it twice.
  let instants: [Int64]
  /// Orders frames; nil in a pattern without a sequence.
  var sequence: Int64?
  /// Whether the name contains no fraction of the second, and perhaps no second.
  let isWholeSecond: Bool
  /// The time that frames without a fraction are spread over, in milliseconds: a second, or a minute.
  private(set) var spanMs: Int64 = 1_000
  /// The offsets from UTC of ``instants``, as `--time-zone` takes them; empty for a time that is not local.
  let offsets: [String]
  /// Whether the system's rules of the zone end before the time.
  private(set) var isAfterRules = false

  /// - Parameters:
  ///   - instant: in unix milliseconds.
  ///   - isWholeSecond: whether nothing is known of its fraction.
  init(exact instant: Int64, isWholeSecond: Bool = false) {
    (instants, offsets) = ([instant], [])
    self.isWholeSecond = isWholeSecond
  }

  /// - Parameter zone: the zone of a local time.
  /// - Returns: nil for a name without a time that exists on a calendar.
  init?(_ match: NamePattern.Match, zone: ZoneRules?) {
    sequence = match.sequence
    if let instant = match.unixMs {
      (instants, isWholeSecond, offsets) = ([instant], false, [])
      return
    }
    if let seconds = match.seconds {
      let parts = seconds.split(separator: UInt8(ascii: "."))
      guard let whole = Int64(String(decoding: parts[0], as: UTF8.self)) else { return nil }
      let fraction = parts.count == 2 ? parts[1] : match.digits[.fraction]
      instants = [whole * 1_000 + (fraction.map(Self.milliseconds) ?? 0)]
      (isWholeSecond, offsets) = (fraction == nil, [])
      return
    }
    guard let time = match.civilTime,
      let zone = match.zone.map({ ZoneRules(offset: String(decoding: $0, as: UTF8.self)) }) ?? zone
    else { return nil }
    let fraction = match.digits[.fraction]
    let seconds = zone.instants(atLocal: time.seconds)
    isAfterRules = zone.endsBefore(local: time.seconds)
    offsets = seconds.map { Self.offset(time.seconds - $0) }
    instants = seconds.map { $0 * 1_000 + (fraction.map(Self.milliseconds) ?? 0) }
    isWholeSecond = fraction == nil
    if match.digits[.second] == nil { spanMs = 60_000 }
  }

  /// `+01:00` for 3 600 seconds.
  private static func offset(_ seconds: Int64) -> String {
    let minutes = seconds.magnitude / 60
    let digits = [minutes / 60, minutes % 60].map { $0 < 10 ? "0\($0)" : "\($0)" }
    return (seconds < 0 ? "-" : "+") + digits.joined(separator: ":")
  }

  /// Digits behind a point, rounded to milliseconds.
  private static func milliseconds(_ digits: ArraySlice<UInt8>) -> Int64 {
    let four = (Array(digits.prefix(4)) + Array("0000".utf8)).prefix(4)
    return (four.reduce(0) { $0 * 10 + Int64($1 - 48) } + 5) / 10
  }
}
