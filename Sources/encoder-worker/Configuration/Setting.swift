import ArgumentParser
import FileSystem

/// A value of an option, and its source.
struct Setting {
  enum Source: Equatable, CustomStringConvertible {
    case flag
    case environment(String)
    case file(String, line: Int)
    case defaultValue

    var description: String {
      switch self {
      case .flag: "flag"
      case .environment(let variable): "environment \(variable)"
      case .file(let path, let line): "\(path):\(line)"
      case .defaultValue: "default"
      }
    }

    /// A usage error that names the source of the setting.
    func error(_ what: String) -> ValidationError { ValidationError("\(self): \(what)".oneLine) }
  }

  /// The option's long name, without dashes.
  let name: String
  /// The value as in a file. A flag's value is `true` or `false`.
  let value: String
  let source: Source

  init(_ name: String, _ value: String, _ source: Source) {
    (self.name, self.value, self.source) = (name, value, source)
  }
}

/// The option for the settings file. `Invocation` reads the file before the words are parsed.
struct SettingsOption: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Settings file with lines such as max-hold = 3000. (default: ENCODER_WORKER_CONFIG, else none)",
      valueName: "file"),
    completion: .file())
  var config: String?
}
