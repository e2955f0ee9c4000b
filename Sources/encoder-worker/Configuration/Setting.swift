import ArgumentParser

/// A value for an option, and where it comes from.
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

    /// Wrong usage, said of the place where it is written.
    func error(_ what: String) -> ValidationError { ValidationError("\(self): \(what)".oneLine) }
  }

  /// The option's long name, without its dashes.
  let name: String
  /// As it would be written in a file. A flag's is `true` or `false`.
  let value: String
  let source: Source

  init(_ name: String, _ value: String, _ source: Source) {
    (self.name, self.value, self.source) = (Self.renamed[name] ?? name, value, source)
  }

  /// Today's names of options, by those that they had before.
  private static let renamed = ["allow-forgetful-queue": "allow-non-durable-queue"]
}

/// The file of settings, for every command that has settings. Settings are read before the words are parsed.
struct SettingsOption: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Settings file with lines such as max-hold = 3000. (default: ENCODER_WORKER_CONFIG, else none)",
      valueName: "file"),
    completion: .file())
  var config: String?
}
