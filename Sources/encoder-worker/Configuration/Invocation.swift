import ArgumentParser
import FileSystem

/// A call of the program: its words, and the settings that file and environment add to them. Flags override the
/// environment, the environment overrides the file. Options that may be repeated keep all values, the nearest last.
struct Invocation {
  let command: CommandSchema
  let tokens: ArgumentTokens
  /// The words that name the command.
  private let commandName: [String]
  /// The command's settings that are in force, nearest last; flags included.
  let settings: [Setting]

  /// Settings from a file or the environment.
  private var added: [Setting] { settings.filter { $0.source != .flag } }

  /// Whether anything but the words themselves can matter. If not, the program starts faster.
  static func needsSettings(_ words: [String], _ variables: [(name: String, value: String)]) -> Bool {
    // Help works with any settings. Shells ask for completions with three dashes.
    let isQuestion = words.contains { ["-h", "--help", "--version", "--experimental-dump-help"].contains($0) }
    let first = words.first ?? ""
    if isQuestion || first == "help" || first.hasPrefix("---") || first.hasPrefix("--generate-completion-script") {
      return false
    }
    return !variables.isEmpty
      || words.contains {
        $0 == "--config" || $0.hasPrefix("--config=") || $0.hasSuffix("=false") || $0.hasSuffix("=true")
      }
  }

  /// - Throws: a usage error that names the file's line or the variable.
  init(_ words: [String], _ variables: [(name: String, value: String)], file named: String? = nil) throws {
    let program = try CommandSchema.program()
    let (command, count) = program.find(words[...])
    let tokens = ArgumentTokens(words.dropFirst(count), of: command)
    let variable = variables.last { $0.name == SettingsEnvironment.file }?.value
    let file = try (named ?? tokens.settings.last { $0.name == "config" }?.value ?? variable).map {
      try SettingsFile.settings(at: $0)
    }
    let all =
      try Self.check(file ?? [], program, command)
      + Self.check(Self.settings(variables, program), program, command) + tokens.settings
    self.command = command
    self.tokens = tokens
    commandName = Array(words.prefix(count))
    settings = all.enumerated().filter { index, setting in
      command.option(setting.name)?.isRepeating == true || !all[(index + 1)...].contains { $0.name == setting.name }
    }.map(\.element)
  }

  private static func settings(_ variables: [(name: String, value: String)], _ program: CommandSchema) -> [Setting] {
    let options = program.allOptions
    return variables.flatMap { variable -> [Setting] in
      let name = SettingsEnvironment.option(of: variable.name)
      let known = options.first { $0.name == name && $0.isSetting } ?? options.first { $0.name == name }
      if name == "config" || known == nil && SettingsEnvironment.isServiceLink(variable.name) { return [] }
      let values = known?.isRepeating == true ? SettingsEnvironment.values(variable.value) : [variable.value]
      return values.map { Setting(name, $0, .environment(variable.name)) }
    }
  }

  /// Returns the settings that this command takes. Each must be a setting of some command: one file serves all.
  private static func check(
    _ settings: [Setting], _ program: CommandSchema, _ command: CommandSchema
  ) throws -> [Setting] {
    let options = program.allOptions
    let known = options.filter(\.isSetting)
    var seen: Set<String> = []
    return try settings.filter { setting in
      guard let known = known.first(where: { $0.name == setting.name }) else {
        if options.contains(where: { $0.name == setting.name }) {
          throw setting.source.error(
            "'\(setting.name)' is no setting: it concerns one call; give it as --\(setting.name)")
        }
        let meant = nearest(setting.name, among: known.map(\.name))
        throw setting.source.error(
          "no command has an option '\(setting.name)'\(meant.map { "; is '\($0)' meant?" } ?? "; see --help")")
      }
      guard known.isRepeating || seen.insert(setting.name).inserted else {
        throw setting.source.error("a second '\(setting.name)'; remove one")
      }
      guard let own = command.option(setting.name), own.isSetting else { return false }
      guard !own.isFlag || ["true", "false"].contains(setting.value) else {
        throw setting.source.error("'\(setting.name)' is true or false, not '\(setting.value)'")
      }
      return true
    }
  }

  private func parse(_ settings: [Setting], with more: [String]) throws -> any ParsableCommand {
    let words = settings.compactMap { setting in
      if command.option(setting.name)?.isFlag != true { return "--\(setting.name)=\(setting.value)" }
      return setting.value == "true" ? "--\(setting.name)" : nil
    }
    return try EncoderWorker.parseAsRoot(commandName + words + more + tokens.words)
  }

  /// Returns the command with all its settings. If the parser refuses them, the program ends; if it would not without
  /// one of them, the message names the source of that.
  ///
  /// - Parameter more: further words, before those that were given.
  func parsed(with more: [String] = []) -> any ParsableCommand {
    let added = added
    do {
      return try parse(added, with: more)
    } catch {
      let message = EncoderWorker.message(for: error)
      // The nearest one first.
      let blamed = added.indices.last { index in
        do {
          _ = try parse(Array(added[..<index] + added[(index + 1)...]), with: more)
          return true
        } catch {
          return EncoderWorker.message(for: error) != message
        }
      }
      guard let blamed else { EncoderWorker.exit(withError: error) }
      let text = EncoderWorker.fullMessage(for: error)
        .replacing(message, with: "\("\(added[blamed].source)".oneLine): \(message)", maxReplacements: 1)
      say(lines: text.printable)
      EncoderWorker.exit(withError: EncoderWorker.exitCode(for: error))
    }
  }
}
