// The source of capture times when neither the recorder nor `batch.json` lists them.

/// A source of capture times.
package enum FrameTimes: Sendable, Equatable {
  /// The names of the files.
  case names(NamePattern)
  /// The times when the files were last modified.
  case modified
  /// The capture times that cameras write into the files.
  case exif
  /// The last number in each name. The frame with the lowest number is captured at `startMs`, in unix milliseconds.
  case numbers(startMs: Int64, CaptureRate)
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

  /// - Parameter text: frames per second, with at most four decimals.
  /// - Returns: nil for anything that is not between one frame an hour and 1 000 frames a second.
  package init?(framesPerSecond text: String) {
    let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    let decimals = parts.count == 2 ? parts[1] : ""
    guard parts.allSatisfy({ $0.utf8.allSatisfy { (48...57).contains($0) } && !$0.isEmpty }), decimals.utf8.count <= 4,
      parts[0].utf8.count <= 4,
      let value = Int64("\(parts[0])\(decimals)" + String(repeating: "0", count: 4 - decimals.utf8.count)),
      (3...10_000_000).contains(value)
    else { return nil }
    (numerator, denominator) = (value, 10_000)
  }

  /// Returns the time of a capture after the first one, in milliseconds. It is exact to half a millisecond for any number.
  ///
  /// - Returns: nil on overflow.
  func offsetMs(of number: Int64) -> Int64? {
    let (product, isTooLarge) = number.multipliedReportingOverflow(by: 1_000 * denominator)
    guard !isTooLarge, product < .max - numerator else { return nil }
    return (product + numerator / 2) / numerator
  }

  /// The nominal interval in milliseconds, at least one.
  var intervalMs: Int64 { max(1, (1_000 * denominator + numerator / 2) / numerator) }
}

extension InputOptions {
  /// Sets the options for capture times from the text of the user.
  ///
  /// - Parameters:
  ///   - nameTime: a ``NamePattern``.
  ///   - times: `mtime` or `exif`.
  ///   - start: the capture of the lowest number, in unix milliseconds or ISO 8601.
  ///   - fps: frames per second; without it, `intervalMs` is the time between numbers.
  ///   - timeZone: the zone of local times.
  ///   - startIsEnough: whether a start needs no rate, because the pictures may have durations of their own.
  /// - Throws: ``InvalidOption``.
  package mutating func setTimes(
    nameTime: String?, times: String?, start: String?, fps: String?, timeZone: String?,
    startIsEnough: Bool = false
  ) throws(InvalidOption) {
    guard [nameTime, times, start].count(where: { $0 != nil }) <= 1 else {
      throw InvalidOption(nameTime != nil ? .nameTime : .times, "capture times come from one source only")
    }
    if let timeZone {
      var zone: ZoneRules?
      do { zone = try ZoneRules(named: timeZone) } catch { throw InvalidOption(.timeZone, "\(error)") }
      guard let zone else {
        throw InvalidOption(
          .timeZone, "no time zone '\(timeZone.shortened(to: 64))'; write UTC, +01:00, or a name like Europe/Berlin")
      }
      self.timeZone = zone
    }
    if let nameTime {
      guard let pattern = NamePattern(nameTime) else {
        throw InvalidOption(
          .nameTime, "'\(nameTime.shortened(to: 80))' is no pattern of one capture time; \(NamePattern.rule)")
      }
      self.times = .names(pattern)
    }
    if let times {
      switch times {
      case "mtime": self.times = .modified
      case "exif": self.times = .exif
      default: throw InvalidOption(.times, "'\(times.shortened(to: 40))' is neither mtime nor exif")
      }
    }
    guard let start else {
      if fps != nil { throw InvalidOption(.fps, "needs a start") }
      return
    }
    guard let startMs = Int64(start) ?? ISOTime.instant(in: start) else {
      let shown = start.shortened(to: 40)
      let isLocal = ISOTime.instant(in: shown + "Z") != nil
      throw InvalidOption(
        .start,
        isLocal
          ? "'\(shown)' is a time without its zone; add it: \(shown)Z for UTC, or \(shown)+01:00"
          : "'\(shown)' is no instant; write unix milliseconds or 2026-01-08T08:05:12.340Z")
    }
    guard fps == nil || intervalMs == nil else {
      throw InvalidOption(.fps, "frames per second or an interval, not both")
    }
    guard fps != nil || intervalMs != nil else {
      guard startIsEnough else { throw InvalidOption(.start, "needs frames per second, or an interval") }
      self.times = .durations(startMs: startMs)
      return
    }
    guard
      let rate = fps.flatMap(CaptureRate.init(framesPerSecond:)) ?? intervalMs.flatMap(CaptureRate.init(intervalMs:))
    else { throw InvalidOption(fps == nil ? .interval : .fps, "is not between one frame an hour and 1000 a second") }
    self.times = .numbers(startMs: startMs, rate)
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
