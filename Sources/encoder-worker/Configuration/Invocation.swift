import ArgumentParser
import FileSystem

/// A call of the program: its words, and the settings that file and environment add to them. Flags override the
/// environment, the environment overrides the file. Options that may be repeated keep all values, the nearest last.
struct Invocation {
  private let root: any ParsableCommand.Type
  let command: CommandSchema
  let tokens: ArgumentTokens
  /// The words that name the command.
  private let commandName: [String]
  /// The settings from a file or the environment that no nearer source overrides, nearest last.
  private let added: [Setting]
  /// The command's options, each with its values in this call.
  let options: [ResolvedOption]

  /// Whether anything but the words themselves can matter. If not, the program starts faster.
  static func needsSettings(_ words: [String], _ variables: [(name: String, value: String)]) -> Bool {
    // Help works with any settings.
    if isQuestion(words) { return false }
    return !variables.isEmpty
      || words.contains {
        $0 == "--config" || $0.hasPrefix("--config=") || $0.hasSuffix("=false") || $0.hasSuffix("=true")
      }
  }

  /// Whether the words ask the parser itself. Shells ask for completions with three dashes.
  static func isQuestion(_ words: [String]) -> Bool {
    let first = words.first ?? ""
    return words.contains { ["-h", "--help", "--version", "--experimental-dump-help"].contains($0) }
      || first == "help" || first.hasPrefix("---") || first.hasPrefix("--generate-completion-script")
  }

  /// - Parameter root: the program.
  /// - Throws: a usage error that names the file's line or the variable.
  init(
    of root: any ParsableCommand.Type, _ words: [String], _ variables: [(name: String, value: String)],
    file named: String? = nil
  ) throws {
    self.root = root
    let program = try CommandSchema.program(root)
    let (command, count) = program.find(words[...])
    let tokens = ArgumentTokens(words.dropFirst(count), of: command)
    let declared = DeclaredSettings(program)
    let variable = variables.last { $0.name == SettingsEnvironment.file }?.value
    let named = named ?? tokens.settings.last { $0.name == "config" }?.value ?? variable
    let inFile = try named.map { try SettingsFile.settings(at: $0) } ?? []
    let inEnvironment = declared.settings(in: variables)
    let names = Set((inFile + inEnvironment + tokens.settings).map(\.name))
    let file = try declared.checked(inFile, for: command, beside: names)
    let environment = try declared.checked(inEnvironment, for: command, beside: names)
    let given = Self.nearest(file + environment + tokens.settings, of: command)
    self.command = command
    self.tokens = tokens
    commandName = Array(words.prefix(count))
    added = given.filter { $0.source != .flag }
    options = command.options.map { option in
      ResolvedOption(option, given.filter { $0.name == option.name })
    }
  }

  /// Leaves out values that a nearer one overrides.
  private static func nearest(_ all: [Setting], of command: CommandSchema) -> [Setting] {
    all.enumerated().filter { index, setting in
      command.option(setting.name)?.isRepeating == true || !all[(index + 1)...].contains { $0.name == setting.name }
    }.map(\.element)
  }

  private func parse(_ settings: [Setting], with more: [String]) throws -> any ParsableCommand {
    let words = settings.compactMap { setting in
      if command.option(setting.name)?.isFlag != true { return "--\(setting.name)=\(setting.value)" }
      return setting.value == "true" ? "--\(setting.name)" : nil
    }
    return try root.parseAsRoot(commandName + words + more + tokens.words)
  }

  /// Returns the command with all its settings. If the parser refuses them, the program ends; if it would not without
  /// one of them, the message names the source of that.
  ///
  /// - Parameter more: further words, before those that were given.
  func parsed(with more: [String] = []) -> any ParsableCommand {
    do {
      return try parse(added, with: more)
    } catch {
      // A value that is alive here at the exit counts as a leak.
      root.exit(withError: tell(error, with: more) ? root.exitCode(for: error) : error)
    }
  }

  /// Tells the message of the parser with the source of the setting that is at fault.
  ///
  /// - Returns: whether it is one.
  @inline(never)
  private func tell(_ error: any Error, with more: [String]) -> Bool {
    let words = commandName + tokens.words
    guard let text = text(blaming: error, with: more) ?? UnknownOptions.text(blaming: error, words, of: root) else {
      return false
    }
    say(lines: text)
    return true
  }

  /// Returns the parser's message with the source of the setting that it would not refuse without; nil if there is none.
  private func text(blaming error: any Error, with more: [String]) -> String? {
    let message = root.message(for: error)
    // The nearest one first.
    let blamed = added.indices.last { index in
      do {
        _ = try parse(Array(added[..<index] + added[(index + 1)...]), with: more)
        return true
      } catch {
        return root.message(for: error) != message
      }
    }
    guard let blamed else { return nil }
    return root.fullMessage(for: error)
      .replacing(message, with: "\("\(added[blamed].source)".oneLine): \(message)", maxReplacements: 1).printable
  }
}
