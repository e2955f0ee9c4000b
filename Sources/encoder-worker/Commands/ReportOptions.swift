import ArgumentParser
import FileSystem
import JSON
import SegmentEncoder
import Sessions

/// The report to hand on: see ``Report``.
struct ReportOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Also write a report to hand on into this directory: no picture and no name.", valueName: "dir"),
    completion: .directory)
  var report: String?

  @Flag(help: "With --report: add the videos, or the files of the batch, as they are.")
  var pixels = false

  func validate() throws {
    if pixels && report == nil { throw ValidationError("--pixels works with --report") }
    if let report { try requireName("--report", report, such: "report") }
  }

  /// Refuses a directory in which the report would count as an orphan.
  func requireTarget() throws { if let report { try SessionDirectory.requireOutside(report) } }

  /// The facts of a report on the program and its settings.
  ///
  /// - Parameter file: the file of settings that the call names.
  static func origin(_ file: String?) -> Report.Origin {
    Report.Origin(version: ProgramVersion.text, settings: ReportSettings.given(file))
  }
}

/// The settings that `run` has here, for a report.
enum ReportSettings {
  /// Returns the settings from the file and the environment. A value that may be a name is left out.
  static func given(_ file: String?) -> [JSONValue] {
    // Settings that run refuses are none.
    guard let call = try? Invocation(of: EncoderWorker.self, ["run"], SettingsEnvironment.variables(), file: file)
    else {
      return []
    }
    return call.options.filter(\.option.isSetting).flatMap { resolved in
      resolved.given.map { setting in
        let value = isPlain(setting.value, of: resolved.option) ? JSONValue.string(setting.value) : .null
        return .object(["name": .string(resolved.option.name), "value": value])
      }
    }
  }

  /// Whether a value is one of a list, true or false, or a number with a unit.
  private static func isPlain(_ value: String, of option: CommandSchema.Option) -> Bool {
    if option.facts.secret != nil || option.facts.place != nil { return false }
    if option.values.contains(value) || ["true", "false"].contains(value) { return true }
    if option.name == "limit" { return LimitSetting(argument: value) != nil }
    let unit = value.drop { "0"..."9" ~= $0 || $0 == "." }
    return value.count <= 12 && unit.count < value.count
      && ["", "%", "k", "M", "G", "T", "K", "s", "m", "h", "d", "w"].contains(unit)
  }
}
