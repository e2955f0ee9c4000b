import ArgumentParser
import JSON
import SegmentEncoder

struct ConfigCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "config",
    abstract: "Show a command's settings, and the source of each.",
    usage: "encoder-worker config [<command>] [<its options>] [--config <file>] [--json]",
    discussion: """
      Options can stand in a file (max-hold = 3000) and in the environment (ENCODER_WORKER_MAX_HOLD=3000). A flag overrides the environment, the environment overrides the file. The default command is run. Exit status 64 if the command would refuse the settings.
      """)

  @OptionGroup
  var settings: SettingsOption

  @Flag(help: "Print results as JSON, one object a line.")
  var json = false

  @Argument(
    parsing: .allUnrecognized,
    help: ArgumentHelp("A command with its options.", valueName: "words"),
    completion: .list(Self.commands()))
  var words: [String] = []

  func run() throws {
    let call = try Invocation(words, SettingsEnvironment.variables(), file: settings.config)
    judge(call)
    let rows = call.command.options.filter(\.isSetting).flatMap { option in
      let found = call.settings.filter { $0.name == option.name }
      let inForce = option.isRepeating ? Self.nearest(found) : found.suffix(1)
      return inForce.isEmpty
        ? [(option, option.defaultValue, Setting.Source.defaultValue)]
        : inForce.map { (option, Self.shown($0.value, of: option), $0.source) }
    }
    if json {
      for (option, value, source) in rows { answer(Self.json(option.name, value, source)) }
    } else {
      answer(table([["name", "value", "from"]] + rows.map { [$0.name, $1 ?? $0.documentedDefault ?? "", "\($2)"] }))
    }
  }

  /// Without a password.
  private static func shown(_ value: String, of option: CommandSchema.Option) -> String {
    option.name == "queue" ? RedisURL(argument: value).description : value
  }

  /// Of those that name the same thing, as `side=4096` and `side=2000` do, the last one counts.
  private static func nearest(_ settings: [Setting]) -> [Setting] {
    func key(_ setting: Setting) -> Substring { setting.value.prefix { $0 != "=" } }
    return settings.enumerated().filter { index, setting in
      !settings[(index + 1)...].contains { key($0) == key(setting) }
    }.map(\.element)
  }

  private static func commands() -> [String] { EncoderWorker.commandNames }

  /// Ends the program where the command would, but not for what the call itself would still bring.
  private func judge(_ call: Invocation) {
    let given = Set(call.settings.map(\.name))
    // Which of these it wants, a command asks itself.
    let isRemote = call.command.option("spool") == nil || !given.isDisjoint(with: ["queue", "store"])
    let places: Set = isRemote ? ["queue", "store"] : ["spool"]
    let missing = call.command.options.filter {
      ($0.isRequired || places.contains($0.name)) && !given.contains($0.name)
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
