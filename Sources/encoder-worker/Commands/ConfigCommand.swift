import ArgumentParser
import FileSystem
import JSON
import Remote
import SegmentEncoder

struct ConfigCommand: DescribedCommand {
  static let configuration = CommandConfiguration(
    commandName: "config",
    abstract: "Show a command's settings, or check an object store.",
    subcommands: [Show.self, ConfigCheckCommand.self],
    defaultSubcommand: Show.self)

  static let page = HelpPage(example: "config run --spool spool")
}

extension ConfigCommand {
  struct Show: DescribedCommand {
    static let configuration = CommandConfiguration(
      commandName: "show",
      abstract: "Show a command's settings, and the source of each.",
      usage: "encoder-worker config [<command>] [<its options>] [<options>]",
      discussion: """
        Settings are options that can also stand in a file (max-hold = 3000) and in the environment (ENCODER_WORKER_MAX_HOLD=3000). A flag overrides the environment, the environment overrides the file. The default command is run. Exit status 64 if the command would refuse the settings.
        """)

    static let page = HelpPage(example: "config run --spool spool", common: ["json"])

    @OptionGroup var settings: SettingsOption
    @OptionGroup var results: ResultOptions

    @Argument(
      parsing: .allUnrecognized,
      help: ArgumentHelp("A command with its options.", valueName: "words"),
      completion: .list(EncoderWorker.commandNames))
    var words: [String] = []

    func run() throws {
      let call = try Invocation(of: EncoderWorker.self, words, SettingsEnvironment.variables(), file: settings.config)
      validate(call)
      let rows = call.options.filter(\.option.isSetting).flatMap { resolved in
        resolved.values.map { (resolved.option, value: $0.value, source: $0.source) }
      }
      results.print(rows, head: ["name", "value", "from"]) { option, value, source in
        Self.json(option.name, Self.shown(value, of: option), source)
      } row: { option, value, source in
        [option.name, Self.shown(value, of: option) ?? option.facts.defaultValue ?? "", "\(source)"]
      }
    }

    /// The value without a password, or another secret in an address.
    private static func shown(_ value: String?, of option: CommandSchema.Option) -> String? {
      guard let value else { return nil }
      switch option.facts.secret {
      case .queue: return QueueAddress(argument: value).description
      case .receiver: return HTTPAddress(argument: value).name
      case nil: return value
      }
    }

    /// Ends the program if the command would refuse the settings. Adds examples of missing values that a later call
    /// would give.
    private func validate(_ call: Invocation) {
      // The parser does not know that a command needs a spool, or else a queue and a store.
      let places = call.options.filter { !$0.given.isEmpty }.compactMap(\.option.facts.place)
      let hasSpool = call.options.contains { $0.option.facts.place == .spool }
      let place = hasSpool && !places.contains(.store) ? OptionFacts.Backend.spool : .store
      let missing = call.options.filter {
        ($0.option.isRequired || $0.option.facts.place == place) && $0.given.isEmpty
      }
      var added = missing.map { "--\($0.option.name)=\($0.option.example)" }
      let areReplaced = call.options.contains { $0.option.facts.replacesArguments && !$0.given.isEmpty }
      if !call.tokens.hasArguments && !areReplaced {
        added += Array(repeating: "-", count: call.command.arguments.count)
      }
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
}
