import ArgumentParser

/// The help of a command for people: usage, an example, the options that a call needs, those that many calls have, and the rest.
struct HelpText {
  private static let columns = 80
  /// The column of the meanings.
  private static let indent = 26

  private let schema: CommandSchema
  /// The words that name the command, from the program's name on.
  private let name: String

  init(_ schema: CommandSchema, words: [String]) {
    self.schema = schema
    name = (["encoder-worker"] + words).joined(separator: " ")
  }

  /// Returns the help that a call asks for; nil if it asks for none.
  ///
  /// - Throws: wrong usage for an unknown command.
  static func answer(to words: [String], of root: any ParsableCommand.Type) throws -> String? {
    let options = words.prefix { $0 != "--" }
    let isHelp = words.first == "help"
    guard isHelp || options.contains(where: { ["-h", "--help"].contains($0) }) else { return nil }
    let asked = options.dropFirst(isHelp ? 1 : 0).filter { !["-h", "--help"].contains($0) }
    if asked.isEmpty { return program(root) }
    var (schema, names) = (try CommandSchema.program(root), [String]())
    for word in asked {
      guard let named = schema.subcommands.first(where: { $0.name == word }) else { break }
      (schema, names) = (named, names + [word])
    }
    if names.isEmpty && !isHelp, asked[0].hasPrefix("-") {
      // The options of the default command.
      (schema, names) = (schema.find([]).command, ["run"])
    }
    guard !names.isEmpty, !isHelp || names.count == asked.count else {
      let word = asked[names.count]
      let meant = nearest(word, among: schema.subcommands.map(\.name)).map { " (did you mean '\($0)'?)" } ?? ""
      throw ValidationError("unknown command '\(word)'\(meant); see encoder-worker help")
    }
    return HelpText(schema, words: names).text
  }

  // MARK: the program

  /// The help of the program, which fits a screen of 24 lines.
  static func program(_ root: any ParsableCommand.Type) -> String {
    let configuration = root.configuration
    let rows = configuration.groupedSubcommands.flatMap { group in
      group.subcommands.enumerated().map { index, command in
        let name = command.configuration.commandName ?? ""
        return (index == 0 ? group.name : "").leftAligned(9) + name.leftAligned(12) + command.configuration.abstract
      }
    }
    return
      ([
        "USAGE:   encoder-worker COMMAND [OPTIONS]       help COMMAND lists the options",
        "EXAMPLE: encoder-worker film shots/ --to film.mp4", "", configuration.abstract,
      ] + rows + [
        "Exit: 0 done, 64 wrong usage, 65 a batch refused, 74/75 disk or network failed"
      ]).joined(separator: "\n")
  }

  // MARK: a command

  var text: String {
    let parts = [
      Self.labelled("USAGE: ", usage) + (schema.page.map { "\nEXAMPLE: encoder-worker \($0.example)" } ?? ""),
      Self.wrapped(schema.abstract),
      section("ARGUMENTS", schema.arguments.map { ("<\($0.name)>" + ($0.isRepeating ? " ..." : ""), $0.abstract) }),
      section(requiredTitle, required.map(Self.row)), section("COMMON OPTIONS", common.map(Self.row)),
      section(required.isEmpty && common.isEmpty ? "OPTIONS" : "MORE OPTIONS", rest.map(Self.row)),
      section("COMMANDS", commands),
      schema.discussion.isEmpty ? "" : "DETAILS:\n" + Self.wrapped(schema.discussion),
    ]
    return parts.filter { !$0.isEmpty }.joined(separator: "\n\n")
  }

  private var commands: [(String, String)] {
    schema.subcommands.filter { $0.name != "help" }.map { command in
      (command.name + (command.name == schema.defaultSubcommand ? " (default)" : ""), command.abstract)
    }
  }

  /// One line for each form of a call.
  private var usage: String {
    if let usage = schema.usage { return usage }
    if !schema.subcommands.isEmpty { return "\(name) COMMAND [<options>]" }
    let arguments = schema.arguments.map { argument in
      let name = "<\(argument.name)>" + (argument.isRepeating ? " ..." : "")
      return argument.isOptional ? "[\(name)]" : name
    }
    let groups = schema.page?.required ?? []
    return (groups.isEmpty ? [[]] : groups).map { group in
      ([name] + arguments + options(group).map(Self.written) + ["[<options>]"]).joined(separator: " ")
    }.joined(separator: "\n")
  }

  /// `--output <dir>`.
  private static func written(_ option: CommandSchema.Option) -> String {
    "--\(option.name)" + (option.isFlag ? "" : " <\(option.valueName)>")
  }

  private var required: [CommandSchema.Option] {
    var seen: Set<String> = []
    return options((schema.page?.required ?? []).flatMap(\.self).filter { seen.insert($0).inserted })
  }

  private var common: [CommandSchema.Option] { options(schema.page?.common ?? []) }

  private var rest: [CommandSchema.Option] {
    let first = Set((required + common).map(\.name))
    return schema.options.filter { !first.contains($0.name) && $0.name != "version" }
  }

  private func options(_ names: [String]) -> [CommandSchema.Option] { names.compactMap { schema.option($0) } }

  private var requiredTitle: String {
    let groups = schema.page?.required ?? []
    let names = groups.map { $0.map { "--\($0)" }.joined(separator: " and ") }
    return groups.count < 2 ? "REQUIRED" : "REQUIRED: " + names.joined(separator: ", or ")
  }

  private static func row(_ option: CommandSchema.Option) -> (String, String) {
    let short = option.short.map { "-\($0), " } ?? ""
    let hasDefault = option.defaultValue != nil && !option.isFlag
    let usual = hasDefault && !option.abstract.contains("(default: ") ? " (default: \(option.defaultValue ?? ""))" : ""
    let isListed = option.values.allSatisfy(option.abstract.contains)
    let values = isListed ? "" : " (values: \(option.values.joined(separator: ", ")))"
    return (short + written(option), option.abstract + values + usual)
  }

  private func section(_ title: String, _ rows: [(label: String, meaning: String)]) -> String {
    if rows.isEmpty { return "" }
    let lines = rows.map { label, meaning in
      let head = "  " + label
      guard head.count < Self.indent else { return head + "\n" + Self.wrapped(meaning, indent: Self.indent) }
      return Self.labelled(head.leftAligned(Self.indent), meaning)
    }
    return "\(title):\n" + lines.joined(separator: "\n")
  }

  /// Writes a label into the margin of a text's first line.
  private static func labelled(_ label: String, _ text: String) -> String {
    label + wrapped(text, indent: label.count).dropFirst(label.count)
  }

  /// Breaks each line of a text at blanks. A longer word stays whole.
  private static func wrapped(_ text: String, indent: Int = 0) -> String {
    let margin = String(repeating: " ", count: indent)
    return text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
      var lines: [String] = []
      for word in line.split(separator: " ") {
        if let last = lines.last, last.count + 1 + word.count <= columns {
          lines[lines.count - 1] += " " + word
        } else {
          lines.append(margin + word)
        }
      }
      return lines.joined(separator: "\n")
    }.joined(separator: "\n")
  }
}
