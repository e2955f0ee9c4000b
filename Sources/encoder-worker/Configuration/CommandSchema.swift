import ArgumentParser
import JSON

/// A command with its options and arguments, from the parser's own dump.
struct CommandSchema {
  struct Option {
    let name: String
    let short: Character?
    let isFlag: Bool
    let isRepeating: Bool
    let isRequired: Bool
    /// The default; nil if there is none, or it depends.
    let defaultValue: String?
    /// A valid value.
    let example: String
    /// The facts that are declared with the option.
    let facts: OptionFacts

    /// Whether the option may be set in a file or in the environment.
    var isSetting: Bool { facts.isSetting }
  }

  let name: String
  let options: [Option]
  /// The number of documented arguments that are no options.
  let arguments: Int
  let subcommands: [CommandSchema]
  private let defaultSubcommand: String?

  /// The whole program.
  static func program() throws -> CommandSchema {
    let text = OptionFacts.$areShown.withValue(true) {
      do {
        _ = try EncoderWorker.parseAsRoot(["--experimental-dump-help"])
        return ""
      } catch {
        // The parser throws its output, as it does for help.
        return EncoderWorker.message(for: error)
      }
    }
    return CommandSchema(try JSONParser.parse(Array(text.utf8)).object?["command"] ?? .null, EncoderWorker.self)
  }

  private init(_ help: JSONValue, _ type: (any ParsableCommand.Type)?) {
    // The default of a subcommand's subcommands is not in the dump.
    let types = type?.configuration.subcommands ?? []
    defaultSubcommand = type?.configuration.defaultSubcommand?.configuration.commandName
    name = help.object?["commandName"]?.string ?? ""
    let arguments = (help.object?["arguments"]?.array ?? []).filter { $0.object?["shouldDisplay"]?.bool == true }
    options = arguments.compactMap { Option($0) }
    self.arguments = arguments.count { $0.object?["kind"]?.string == "positional" }
    subcommands = (help.object?["subcommands"]?.array ?? []).map { help in
      CommandSchema(help, types.first { $0.configuration.commandName == help.object?["commandName"]?.string })
    }
  }

  func option(_ name: String) -> Option? { options.first { $0.name == name } }

  func option(_ short: Character) -> Option? { options.first { $0.short == short } }

  /// The options of this command and its subcommands.
  var allOptions: [Option] { options + subcommands.flatMap(\.allOptions) }

  /// Returns the command of a call, and how many of the first words name it. Without a name it is the default one.
  func find(_ words: ArraySlice<String>) -> (command: CommandSchema, words: Int) {
    if let word = words.first, let named = subcommands.first(where: { $0.name == word }) {
      let found = named.find(words.dropFirst())
      return (found.command, found.words + 1)
    }
    return (subcommands.first { $0.name == defaultSubcommand } ?? self, 0)
  }
}

extension CommandSchema.Option {
  fileprivate init?(_ help: JSONValue) {
    guard let members = help.object, let kind = members["kind"]?.string, kind != "positional" else { return nil }
    let names = (members["names"]?.array ?? []).compactMap(\.object)
    func name(_ kind: String) -> String? { names.first { $0["kind"]?.string == kind }?["name"]?.string }
    guard let long = name("long") else { return nil }
    self.name = long
    short = name("short")?.first
    isFlag = kind == "flag"
    isRepeating = members["isRepeating"]?.bool == true
    defaultValue = isFlag ? "false" : members["defaultValue"]?.string
    facts = OptionFacts(dumped: members["discussion"]?.string)
    isRequired = members["isOptional"]?.bool == false || facts.isNeeded
    example = members["allValues"]?.array?.first?.string ?? facts.example
  }
}
