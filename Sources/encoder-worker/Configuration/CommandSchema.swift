import ArgumentParser
import JSON
import SegmentEncoder

/// A command and what it takes, as the parser itself tells: there is no second list to keep.
struct CommandSchema {
  struct Option {
    let name: String
    let short: Character?
    let isFlag: Bool
    let isRepeating: Bool
    let isNeeded: Bool
    /// The default; nil if there is none, or it depends.
    let defaultValue: String?
    /// The default as the help says it.
    let said: String?
    /// Some value of the right kind.
    let example: String

    /// Options of one call cannot stand in a file or in the environment.
    var isSetting: Bool { !Self.ofOneCall.contains(name) }

    private static let ofOneCall: Set = [
      "all", "batches", "config", "dry-run", "from", "help", "json", "repair", "session", "start", "to", "version",
      "watch",
    ]
  }

  let name: String
  let options: [Option]
  /// How many arguments it shows that are no options.
  let arguments: Int
  private let subcommands: [CommandSchema]
  private let defaultValue: String?

  /// The whole program.
  static func program() throws -> CommandSchema {
    let text: String
    do {
      _ = try EncoderWorker.parseAsRoot(["--experimental-dump-help"])
      text = ""
    } catch {
      // The parser hands out what it would print, as it does with help.
      text = EncoderWorker.message(for: error)
    }
    return CommandSchema(try JSONParser.parse(Array(text.utf8)).object?["command"] ?? .null, EncoderWorker.self)
  }

  private init(_ help: JSONValue, _ type: (any ParsableCommand.Type)?) {
    // The default of a subcommand's subcommands is not in the dump.
    let types = type?.configuration.subcommands ?? []
    defaultValue = type?.configuration.defaultSubcommand?.configuration.commandName
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

  /// The options of this command and of all below it.
  var allOptions: [Option] { options + subcommands.flatMap(\.allOptions) }

  /// The command that a call's first words name, or leave to be understood, and how many words name it.
  func find(_ words: ArraySlice<String>) -> (command: CommandSchema, words: Int) {
    if let word = words.first, let named = subcommands.first(where: { $0.name == word }) {
      let found = named.find(words.dropFirst())
      return (found.command, found.words + 1)
    }
    return (subcommands.first { $0.name == defaultValue } ?? self, 0)
  }
}

extension CommandSchema.Option {
  /// The default in the help text, where the parser knows none.
  private static func said(in help: String) -> String? {
    let parts = help.split(separator: "(default: ", maxSplits: 1)
    return parts.count == 2 && help.hasSuffix(")") ? String(parts[1].dropLast()) : nil
  }

  fileprivate init?(_ help: JSONValue) {
    guard let members = help.object, let kind = members["kind"]?.string, kind != "positional" else { return nil }
    let names = (members["names"]?.array ?? []).compactMap(\.object)
    func name(_ kind: String) -> String? { names.first { $0["kind"]?.string == kind }?["name"]?.string }
    guard let long = name("long") else { return nil }
    self.name = long
    short = name("short")?.first
    isFlag = kind == "flag"
    isRepeating = members["isRepeating"]?.bool == true
    isNeeded = members["isOptional"]?.bool == false
    defaultValue = isFlag ? "false" : members["defaultValue"]?.string
    said = Self.said(in: members["abstract"]?.string ?? "")
    // A file that every command would write, a queue and a store as every one is named.
    let examples = ["to": "sheet.png", "queue": "redis://localhost", "store": "s3://bucket"]
    example = members["allValues"]?.array?.first?.string ?? examples[long] ?? "1"
  }
}
