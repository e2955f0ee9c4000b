// The source of capture times when neither the recorder nor `batch.json` lists them.

/// A source of capture times.
package enum FrameTimes: Sendable, Equatable {
  /// The names of the files.
  case names(NamePattern)
  /// The times when the files were last modified.
  case modified
  /// The capture times that cameras write into the files.
  case exif
  /// A list. The first picture of a list of durations is captured at `startMs`.
  indirect case list(TimeList, startMs: Int64?)
  /// The counter in the names: the one of the pattern, else the one that ``NameCounter`` finds. The frame with the lowest number is
  /// captured at `startMs`, in unix milliseconds.
  case numbers(startMs: Int64, CaptureRate, NamePattern?)
  /// The durations in a file of several pictures, of which the first is captured at `startMs`.
  case durations(startMs: Int64)
}

/// A steady rate of captures.
package struct CaptureRate: Sendable, Equatable {
  /// The number of captures in `denominator` seconds.
  private let numerator: Int64
  private let denominator: Int64

  /// - Returns: nil for an interval that is not between 1 ms and an hour.
  package init?(intervalMs: Int64) {
    guard Limits.intervals.contains(intervalMs) else { return nil }
    (numerator, denominator) = (1_000, intervalMs)
  }

  /// - Parameter text: frames per second, as a number with at most nine decimals or as a fraction: `29.97`, `30000/1001`, `1/5`.
  /// - Returns: nil for anything that is not between one frame an hour and 1 000 frames a second.
  package init?(framesPerSecond text: String) {
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard let over = Self.decimal(parts[0]), let under = parts.count == 2 ? Self.decimal(parts[1]) : (1, 1),
      under.value > 0
    else { return nil }
    // Nine digits and nine decimals each: the products fit in 128 bits.
    let (value, per) = (Int128(over.value) * Int128(under.scale), Int128(under.value) * Int128(over.scale))
    guard 3_600 * value >= per, value <= 1_000 * per else { return nil }
    let divisor = Self.commonDivisor(value, per)
    guard let numerator = Int64(exactly: value / divisor), let denominator = Int64(exactly: per / divisor) else {
      return nil
    }
    (self.numerator, self.denominator) = (numerator, denominator)
  }

  private static func decimal(_ text: Substring) -> (value: Int64, scale: Int64)? {
    let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.allSatisfy({ (1...9).contains($0.utf8.count) && $0.utf8.allSatisfy { (48...57).contains($0) } }),
      let value = Int64(parts.joined())
    else { return nil }
    return (value, (0..<(parts.count == 2 ? parts[1].utf8.count : 0)).reduce(1) { scale, _ in 10 * scale })
  }

  private static func commonDivisor(_ one: Int128, _ other: Int128) -> Int128 {
    other == 0 ? one : commonDivisor(other, one % other)
  }

  /// Returns the time of a capture after the first one, in milliseconds. It is exact to half a millisecond for any number.
  ///
  /// - Returns: nil on overflow.
  func offsetMs(of number: Int64) -> Int64? {
    Int64(exactly: (Int128(number) * 1_000 * Int128(denominator) + Int128(numerator / 2)) / Int128(numerator))
  }

  /// Returns the number of the capture that is a time after the first one: the reverse of ``offsetMs(of:)``.
  func number(atOffsetMs offsetMs: Int64) -> Int64? {
    let scale = 1_000 * Int128(denominator)
    return Int64(exactly: (Int128(offsetMs) * Int128(numerator) + scale / 2) / scale)
  }

  /// The nominal interval in milliseconds, at least one.
  var intervalMs: Int64 { max(1, offsetMs(of: 1) ?? 1) }
}

extension InputOptions {
  /// Sets the options for capture times from the text of the user.
  ///
  /// - Parameters:
  ///   - nameTime: a ``NamePattern``.
  ///   - times: `mtime`, `exif`, or a list.
  ///   - start: the capture of the lowest number, or of the first picture in a list of durations, in unix milliseconds or ISO 8601.
  ///   - fps: frames per second; without it, `intervalMs` is the time between numbers.
  ///   - timeZone: the zone of local times.
  ///   - startIsEnough: whether a start needs no rate, because the pictures may have durations of their own.
  ///   - list: reads a list that `times` names; returns nil if there is none of this name.
  /// - Throws: ``InvalidOption``.
  package mutating func setTimes(
    nameTime: String?, times: String?, start: String?, fps: String?, timeZone: String?,
    startIsEnough: Bool = false,
    list: (String, ZoneRules?) throws(InvalidOption) -> TimeList? = { _, _ throws(InvalidOption) in nil }
  ) throws(InvalidOption) {
    let isList = times.map { !["mtime", "exif"].contains($0) } ?? false
    guard times == nil || nameTime == nil && (isList || start == nil) else {
      throw InvalidOption(nameTime != nil ? .nameTime : .times, "capture times come from one source only")
    }
    if let timeZone {
      var zone: ZoneRules?
      do { zone = try ZoneRules(named: timeZone) } catch { throw InvalidOption(.timeZone, "\(error)") }
      guard let zone else { throw InvalidOption(.timeZone, ZoneRules.fault(of: timeZone)) }
      self.timeZone = zone
    }
    var pattern: NamePattern?
    if let nameTime {
      pattern = NamePattern(ofName: nameTime)
      guard let pattern else { throw InvalidOption(.nameTime, NamePattern.fault(of: nameTime)) }
      guard pattern.hasTime || start != nil else {
        throw InvalidOption(
          .nameTime,
          "'\(nameTime.shortened(to: 80))' tells numbers and no time; give the rate of the numbers with --fps")
      }
      self.times = .names(pattern)
    }
    if let times {
      switch times {
      case "mtime": self.times = .modified
      case "exif": self.times = .exif
      default:
        guard let list = try list(times, self.timeZone) else {
          throw InvalidOption(.times, "'\(times.shortened(to: 255))' is neither mtime nor exif, nor a list of times")
        }
        try setTimes(in: list, start: start, fps: fps)
        return
      }
    }
    guard let start else {
      if fps != nil { throw InvalidOption(.fps, "needs a start") }
      return
    }
    let startMs = try Self.instant(start)
    guard fps == nil || intervalMs == nil else {
      throw InvalidOption(.fps, "frames per second or an interval, not both")
    }
    guard fps != nil || intervalMs != nil else {
      guard startIsEnough, pattern == nil else {
        throw InvalidOption(.start, "needs frames per second, or an interval")
      }
      self.times = .durations(startMs: startMs)
      return
    }
    guard
      let rate = fps.flatMap(CaptureRate.init(framesPerSecond:)) ?? intervalMs.flatMap(CaptureRate.init(intervalMs:))
    else {
      let range = "is not between one frame an hour and 1000 a second"
      guard fps != nil else { throw InvalidOption(.interval, range) }
      throw InvalidOption(.fps, range + "; write a number or a fraction, such as 2, 29.97 or 30000/1001")
    }
    self.times = .numbers(startMs: startMs, rate, pattern)
  }

  private mutating func setTimes(in list: TimeList, start: String?, fps: String?) throws(InvalidOption) {
    guard fps == nil, list.isRelative || start == nil else {
      throw InvalidOption(fps == nil ? .start : .fps, "\(list.name) tells the times")
    }
    guard list.isRelative else {
      times = .list(list, startMs: nil)
      return
    }
    guard let start else {
      throw InvalidOption(
        .start, "\(list.name) tells durations: give the first capture, for example 2026-01-08T08:05:12Z")
    }
    let startMs = try Self.instant(start)
    if let fault = Limits().fault(ofInstant: startMs) { throw InvalidOption(.start, fault) }
    times = .list(list, startMs: startMs)
  }

  private static func instant(_ start: String) throws(InvalidOption) -> Int64 {
    if let startMs = Int64(start) ?? ISOTime.instant(in: start) { return startMs }
    let shown = start.shortened(to: 40)
    let isLocal = ISOTime.instant(in: shown + "Z") != nil
    throw InvalidOption(
      .start,
      isLocal
        ? "'\(shown)' is a time without its zone; add it: \(shown)Z for UTC, or \(shown)+01:00"
        : "'\(shown)' is no instant; write unix milliseconds or 2026-01-08T08:05:12.340Z")
  }
}

/// An invalid option for input.
package struct InvalidOption: Error, Equatable {
  /// The options, by their names in `batch.json`.
  package enum Name: String, Sendable {
    case nameTime, times, start, fps, timeZone
    case interval = "intervalMs"
  }

  package let name: Name
  /// The cause and the remedy.
  package let cause: String

  init(_ name: Name, _ cause: String) {
    self.name = name
    self.cause = cause
  }
}
