/// Facts about batches that the user states, for recorders that do not write them. A batch that states a fact itself overrides it.
package struct InputOptions: Sendable, Equatable {
  /// The session of batches that name none; nil stands for the session that the batch's name tells.
  package var session: String?
  /// How the names of batches tell their sessions; nil stands for the name up to the first `@`. ``session`` overrides it.
  package var sessionFrom: SessionPattern?
  /// nil stands for the mode of the batch's format.
  package var capture: Batch.Capture?
  /// The nominal capture interval in milliseconds; nil stands for the median distance of the frames.
  package var intervalMs: Int64?
  /// Whether each batch ends its session.
  package var isFinal = false
  /// The source of capture times; nil stands for the names that recorders write.
  package var times: FrameTimes?
  /// The start of a file of several pictures that tells their durations, but no capture time; nil to refuse it.
  package var assumedStartMs: Int64?
  /// The zone of local times in names; nil if the user states none. No zone is guessed.
  package var timeZone: ZoneRules?
  /// Whether a form may take a batch of which it reads few names. Then the reader refuses a batch that loses most of its pictures, and a
  /// user may accept it.
  package var takesFew = false
  /// Whether a batch may have labels only.
  package var takesAdditions = false
  /// Milliseconds that are added to all instants of a batch: see ``Batch/clockOffsetMs``.
  package var clockOffsetMs: Int64 = 0
  /// Whether labels are read: see ``Label``.
  package var takesLabels = true
  /// Labels that the user names, for the one input of the call.
  package var labels: LabelFile?
  /// The file that the call writes, without links. It is no picture of its own film.
  package var target: String?

  /// Whether the files' names tell no times, so that each may be that of a picture.
  var takesAnyName: Bool {
    switch times {
    case .modified?, .exif?, .numbers?: true
    case .names?, .list?, .durations?, nil: false
    }
  }

  package init(session: String? = nil) { self.session = session }
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

  /// Returns the instant that `--start` names, in unix milliseconds.
  package static func instant(_ start: String) throws(InvalidOption) -> Int64 {
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
