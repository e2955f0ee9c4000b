import ArgumentParser
import Films
import FrameBatches
import Sessions

/// A part of a session.
struct PartOptions: ParsableArguments {
  @Option(help: ArgumentHelp("Begin at this instant: unix ms, ISO 8601, or +12.5s from the start.", valueName: "t"))
  var from: String?

  @Option(name: .customLong("to-time"), help: ArgumentHelp("End at this instant.", valueName: "t"))
  var toTime: String?

  @Option(help: ArgumentHelp("End so long after the beginning, as 12.5s, instead of --to-time.", valueName: "seconds"))
  var duration: String?

  func validate() throws { _ = try instants() }

  /// - Throws: wrong usage if the value of an option is no instant.
  func instants() throws -> (from: SessionInstant?, to: SessionInstant?) {
    let (from, to) = (try Self.instant("--from", from), try Self.instant("--to-time", toTime))
    guard let duration else { return (from, to) }
    guard to == nil else { throw ValidationError("--to-time and --duration both say the end: give one of them") }
    guard let lengthMs = SessionInstant.length(duration) else {
      throw ValidationError("--duration '\(duration)': it is a number of seconds, as 12.5s")
    }
    return (from, (from ?? .afterStartMs(0)).after(ms: lengthMs))
  }

  /// The part of a stored session that is read.
  var stored: StoredPart {
    get throws {
      let (from, to) = try instants()
      return from == nil && to == nil ? .whole : .between(from, to)
    }
  }

  private static func instant(_ option: String, _ text: String?) throws -> SessionInstant? {
    guard let text else { return nil }
    guard let instant = SessionInstant(text) else {
      throw ValidationError("\(option) '\(text)': \(SessionInstant.fault(of: text))")
    }
    return instant
  }
}

/// The part of a session that a film shows, its speed, and its key frames; the same for every command that makes a film.
struct ClipOptions: ParsableArguments {
  @OptionGroup var part: PartOptions

  @Option(help: ArgumentHelp("Speed of the film, 0.1 to 100000. (default: 1)", valueName: "x"))
  var speed: String?

  @Option(
    help: ArgumentHelp(
      "Seconds without a key frame while the picture stays, 0 to 600; 0 has one a segment. (default: 120)",
      valueName: "seconds"))
  var keyEvery: Int64?

  func validate() throws { _ = try clip(idle: nil) }

  var isEmpty: Bool {
    part.from == nil && part.toTime == nil && part.duration == nil && speed == nil && keyEvery == nil
  }

  /// - Parameter idle: the handling of idle time; nil to keep it.
  func clip(idle: IdleRule?) throws -> Clip {
    guard let speed = FilmSpeed(speed ?? "1") else {
      throw ValidationError("--speed '\(speed ?? "")': it is \(FilmSpeed.rule)")
    }
    guard let keyFrames = keyEvery.map(KeyFrameRule.init) ?? .standard else {
      throw ValidationError("--key-every '\(keyEvery ?? 0)': it is a number of seconds, 0 to 600")
    }
    let (from, to) = try part.instants()
    return Clip(from: from, to: to, speed: speed, idle: idle, keyFrames: keyFrames)
  }

  /// - Throws: wrong usage if a film has no key frames.
  func validate(for form: FilmForm) throws {
    if keyEvery != nil, form != .mp4 {
      throw ValidationError("--key-every is for MP4; pictures of other forms need no key frame")
    }
  }

  /// - Throws: wrong usage if the path of a film is meant as its end.
  func requireNoInstant(_ to: String) throws {
    if part.from != nil, part.toTime == nil, part.duration == nil, SessionInstant(to) != nil {
      throw ValidationError("--to '\(to)' is an instant: --to names the film, and --to-time its end")
    }
  }

  /// - Throws: wrong usage if an end is a date: the pictures have none.
  func requireNoClock() throws {
    for (option, text) in [("--from", part.from), ("--to-time", part.toTime)] {
      if let text, case .unixMs? = SessionInstant(text) {
        throw ValidationError(
          "\(option) '\(text)': numbered pictures without --start have no dates; write +12.5s, from the film's start")
      }
    }
  }
}
