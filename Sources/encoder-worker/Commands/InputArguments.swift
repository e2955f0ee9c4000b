import ArgumentParser
import FrameBatches
import SegmentEncoder

extension Batch.Capture: ExpressibleByArgument {}

/// Options for facts that recorders may not write; the same for every command that reads batches.
struct CaptureArguments: ParsableArguments {
  @Option(
    help: .setting(
      "interval: a long silence is a gap; onChange: a picture that stayed.", default: "by the batch's format",
      valueName: "mode"))
  var capture: Batch.Capture?

  @Option(
    help: .setting(
      "Nominal capture interval in milliseconds.", default: "1000, or the frames' median distance", valueName: "ms"))
  var interval: Int64?

  // A pattern may begin with a minus sign, and so may an offset.
  @Option(
    parsing: .unconditional,
    help: .setting(
      "Pattern of capture times in names, such as '%Y-%m-%d %H.%M.%S' or %s. See docs/input-formats.md.",
      valueName: "pattern"))
  var nameTime: String?

  @Option(
    parsing: .unconditional,
    help: .setting("Zone of local times in names: UTC, +01:00, or a name like Europe/Berlin.", valueName: "zone"))
  var timeZone: String?

  @Option(
    help: .setting(
      "Source of capture times: mtime, exif, or a file that lists them. See docs/input-formats.md.",
      valueName: "source"))
  var times: String?

  @OptionGroup var names: SessionNameOption

  func validate() throws {
    try require("--interval", interval, in: 1...3_600_000, "milliseconds")
    if !areDurations { _ = try options() }
  }

  /// Whether the times are durations in a list, so that nothing tells when the first picture was captured.
  var areDurations: Bool { times.flatMap { try? Self.list($0, .utc) }?.isRelative == true }

  private static func list(_ path: String, _ zone: ZoneRules?) throws(InvalidOption) -> TimeList? {
    ["mtime", "exif"].contains(path) ? nil : try TimeList(reading: path, zone: zone)
  }

  /// - Parameter readsLists: whether `--times` may name a file.
  /// - Throws: wrong usage.
  func options(
    session: String? = nil, start: String? = nil, fps: String? = nil, readsLists: Bool = true
  ) throws -> InputOptions {
    if !readsLists, let times, !["mtime", "exif"].contains(times) {
      throw ValidationError(
        "--times: '\(times)' is neither mtime nor exif; encode, enqueue and film take lists of times")
    }
    var options = InputOptions(session: session)
    options.sessionFrom = try names.pattern()
    options.capture = capture
    options.intervalMs = interval
    do {
      try options.setTimes(
        nameTime: nameTime, times: times, start: start, fps: fps, timeZone: timeZone, startIsEnough: true
      ) {
        path, zone throws(InvalidOption) in
        readsLists ? try Self.list(path, zone) : nil
      }
    } catch {
      throw ValidationError("\(Self.flag(of: error.name)): \(error.cause)")
    }
    return options
  }

  private static func flag(of option: InvalidOption.Name) -> String {
    switch option {
    case .nameTime: "--name-time"
    case .times: "--times"
    case .start: "--start"
    case .fps: "--fps"
    case .timeZone: "--time-zone"
    case .interval: "--interval"
    case .labels: "--labels"
    }
  }
}

/// The option for sessions in the names of batches.
struct SessionNameOption: ParsableArguments {
  static let idHelp = "ID of the session, if the input names none."

  @Option(
    parsing: .unconditional,
    help: .setting(
      "Pattern of batch names that have the session, such as '{session}-{part}'. See docs/input-formats.md.",
      valueName: "pattern", example: "{session}-{part}"))
  var sessionFrom: String?

  func validate() throws { _ = try pattern() }

  /// - Throws: wrong usage.
  func pattern() throws -> SessionPattern? {
    do {
      return try sessionFrom.map { try SessionPattern($0) }
    } catch {
      throw ValidationError("--session-from: \(error)")
    }
  }
}

/// Options of the batches or frames that a command is given.
struct InputArguments: ParsableArguments {
  @Flag(help: "End the session with this batch.")
  var final = false

  static let startHelp = "Capture of the first picture, in unix ms or ISO 8601."
  static let rateHelp = "Frames per second of numbered pictures."

  @Option(help: ArgumentHelp(Self.startHelp, valueName: "time"))
  var start: String?

  @Option(help: ArgumentHelp(Self.rateHelp, valueName: "rate"))
  var fps: String?

  @OptionGroup var capture: CaptureArguments

  func validate() throws { _ = try options(session: nil) }

  /// - Throws: wrong usage.
  func options(session: String?) throws -> InputOptions {
    var options = try capture.options(session: session, start: start, fps: fps)
    options.isFinal = final
    return options
  }
}

/// - Throws: wrong usage if `session` cannot name a session.
func requireSessionID(_ session: String?) throws {
  if let session, SessionID(session) == nil { throw ValidationError("--session: \(SessionID.rule)") }
}
