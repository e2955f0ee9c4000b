import ArgumentParser
import JSON
import Notifying
import Remote
import SegmentEncoder

struct ConfigCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "config",
    abstract: "Show a command's settings, and the source of each.",
    usage: "encoder-worker config [<command>] [<its options>] [--config <file>] [--json]",
    discussion: """
      Settings are options that can also stand in a file (max-hold = 3000) and in the environment (ENCODER_WORKER_MAX_HOLD=3000). A flag overrides the environment, the environment overrides the file. The default command is run. Exit status 64 if the command would refuse the settings.
      """)

  @OptionGroup var settings: SettingsOption
  @OptionGroup var results: ResultOptions

  @Argument(
    parsing: .allUnrecognized,
    help: ArgumentHelp("A command with its options.", valueName: "words"),
    completion: .list(EncoderWorker.commandNames))
  var words: [String] = []

  func run() throws {
    let call = try Invocation(words, SettingsEnvironment.variables(), file: settings.config)
    validate(call)
    let rows = call.command.options.filter(\.isSetting).flatMap { option in
      let found = call.settings.filter { $0.name == option.name }
      let inForce = option.isRepeating ? Self.effective(found) : found.suffix(1)
      return inForce.isEmpty
        ? [(option, option.defaultValue, Setting.Source.defaultValue)]
        : inForce.map { (option, Self.shown($0.value, of: option), $0.source) }
    }
    results.print(rows, head: ["name", "value", "from"]) { option, value, source in
      Self.json(option.name, value, source)
    } row: { option, value, source in
      [option.name, value ?? option.documentedDefault ?? "", "\(source)"]
    }
  }

  /// The value without a password, or another secret in an address.
  private static func shown(_ value: String, of option: CommandSchema.Option) -> String {
    switch option.name {
    case "queue": RedisURL(argument: value).description
    case "notify": WebhookURL(argument: value).name
    default: value
    }
  }

  /// The settings that count: the last of those with the same key, such as `side=4096` and `side=2000`.
  private static func effective(_ settings: [Setting]) -> [Setting] {
    func key(_ setting: Setting) -> Substring { setting.value.prefix { $0 != "=" } }
    return settings.enumerated().filter { index, setting in
      !settings[(index + 1)...].contains { key($0) == key(setting) }
    }.map(\.element)
  }

  /// Ends the program if the command would refuse the settings. Adds examples of missing values that a later call
  /// would give.
  private func validate(_ call: Invocation) {
    let given = Set(call.settings.map(\.name))
    // The parser does not know that a command needs a spool, or else a queue and a store.
    let isRemote = call.command.option("spool") == nil || !given.isDisjoint(with: ["queue", "store"])
    let alternatives: Set = isRemote ? ["queue", "store"] : ["spool"]
    let missing = call.command.options.filter {
      ($0.isRequired || alternatives.contains($0.name)) && !given.contains($0.name)
    }
    var added = missing.map { "--\($0.name)=\($0.example)" }
    let isSupplied = call.tokens.hasArguments || !given.isDisjoint(with: ["batches", "from"])
    if !isSupplied { added += Array(repeating: "-", count: call.command.arguments) }
    _ = call.parsed(with: added)
  }

  private static func json(_ name: String, _ value: String?, _ source: Setting.Source) -> String {
    var members: [String: JSONValue] = ["name": .string(name), "value": value.map { .string($0) } ?? .null]
    switch source {
    case .flag: members["source"] = .string("flag")
    case .defaultValue: members["source"] = .string("default")
    case .environment(let variable):
      members.merge(["source": .string("environment"), "variable": .string(variable)]) { $1 }
    case .file(let path, let line):
      members.merge(["source": .string("file"), "file": .string(path), "line": .number("\(line)")]) { $1 }
    }
    return JSONValue.object(members).line
  }
}
