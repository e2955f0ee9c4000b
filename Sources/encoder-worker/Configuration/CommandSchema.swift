import ArgumentParser
import JSON

/// A command with its options and arguments, from the parser's own dump.
struct CommandSchema {
  struct Option {
    let name: String
    let short: Character?
    let valueName: String
    /// One line for people.
    let abstract: String
    /// All valid values; empty if they cannot be listed.
    let values: [String]
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

  /// A documented argument that is no option.
  struct Argument {
    let name: String
    let abstract: String
    let isRepeating: Bool
    let isOptional: Bool
  }

  let name: String
  let abstract: String
  let discussion: String
  /// The forms of a call, one a line; nil if they follow from arguments and options.
  let usage: String?
  /// Nil for a group of commands.
  let page: HelpPage?
  let options: [Option]
  let arguments: [Argument]
  let subcommands: [CommandSchema]
  let defaultSubcommand: String?

  /// - Parameter root: the whole program.
  static func program(_ root: any ParsableCommand.Type) throws -> CommandSchema {
    let register = OptionFacts.Register()
    let text = OptionFacts.$register.withValue(register) {
      do {
        _ = try root.parseAsRoot(["--experimental-dump-help"])
        return ""
      } catch {
        // The parser throws its output, as it does for help.
        return root.message(for: error)
      }
    }
    return CommandSchema(
      try JSONParser.parse(Array(text.utf8)).object?["command"] ?? .null, root, register)
  }

  private init(_ help: JSONValue, _ type: (any ParsableCommand.Type)?, _ register: OptionFacts.Register) {
    // The default of a subcommand's subcommands is not in the dump.
    let types = type?.configuration.subcommands ?? []
    defaultSubcommand = type?.configuration.defaultSubcommand?.configuration.commandName
    name = help.object?["commandName"]?.string ?? ""
    abstract = type?.configuration.abstract ?? ""
    discussion = type?.configuration.discussion ?? ""
    usage = type?.configuration.usage
    page = (type as? any DescribedCommand.Type)?.page
    let arguments = (help.object?["arguments"]?.array ?? []).compactMap(\.object).filter {
      $0["shouldDisplay"]?.bool == true
    }
    options = arguments.compactMap { Option($0, register) }
    self.arguments = arguments.filter { $0["kind"]?.string == "positional" }.map { Argument($0) }
    subcommands = (help.object?["subcommands"]?.array ?? []).map { help in
      CommandSchema(
        help, types.first { $0.configuration.commandName == help.object?["commandName"]?.string }, register)
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

extension CommandSchema.Argument {
  fileprivate init(_ members: [String: JSONValue]) {
    name = members["valueName"]?.string ?? ""
    abstract = members["abstract"]?.string ?? ""
    isRepeating = members["isRepeating"]?.bool == true
    isOptional = members["isOptional"]?.bool == true
  }
}

extension CommandSchema.Option {
  fileprivate init?(_ members: [String: JSONValue], _ register: OptionFacts.Register) {
    guard let kind = members["kind"]?.string, kind != "positional" else { return nil }
    let names = (members["names"]?.array ?? []).compactMap(\.object)
    func name(_ kind: String) -> String? { names.first { $0["kind"]?.string == kind }?["name"]?.string }
    guard let long = name("long") else { return nil }
    self.name = long
    short = name("short")?.first
    valueName = members["valueName"]?.string ?? ""
    abstract = members["abstract"]?.string ?? ""
    values = (members["allValues"]?.array ?? []).compactMap(\.string)
    isFlag = kind == "flag"
    isRepeating = members["isRepeating"]?.bool == true
    defaultValue = isFlag ? "false" : members["defaultValue"]?.string
    facts = register.facts(members["discussion"]?.string)
    isRequired = members["isOptional"]?.bool == false || facts.isNeeded
    example = values.first ?? facts.example
  }
}
