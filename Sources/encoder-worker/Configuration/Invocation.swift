import ArgumentParser
import Encoding
import FileSystem

/// A call of the program: its words, and what file and environment add to them. Flags count before the environment, the
/// environment before the file; of an option that may be repeated all count, the nearest last.
struct Invocation {
  let command: CommandSchema
  /// The words that name the command, and those behind them.
  private let name: [String]
  private let given: [String]
  /// The settings of this command, nearest last; flags included.
  let settings: [Setting]
  /// Those of them that are not given as words.
  private let added: [Setting]
  /// Whether there are words besides the command's name and options.
  let hasArguments: Bool

  /// Whether anything but the words themselves can matter; if not, the start is spared all this.
  static func needsSettings(_ words: [String], _ variables: [(name: String, value: String)]) -> Bool {
    // Help works with any settings. Shells ask for completions with three dashes.
    let isQuestion = words.contains { ["-h", "--help", "--version", "--experimental-dump-help"].contains($0) }
    if isQuestion || words.first == "help" || words.first?.hasPrefix("---") == true
      || words.first?.hasPrefix("--generate-completion-script") == true
    {
      return false
    }
    return !variables.isEmpty
      || words.contains {
        $0 == "--config" || $0.hasPrefix("--config=") || $0.hasSuffix("=false") || $0.hasSuffix("=true")
      }
  }

  /// - Throws: wrong usage, with the file's line or the variable that is wrong.
  init(_ words: [String], _ variables: [(name: String, value: String)], file named: String? = nil) throws {
    let program = try CommandSchema.program()
    let (command, count) = program.find(words[...])
    let given = ArgumentTokens(words.dropFirst(count), of: command)
    let variable = variables.last { $0.name == SettingsEnvironment.file }?.value
    let file = try (named ?? given.settings.last { $0.name == "config" }?.value ?? variable).map {
      try SettingsFile.settings(at: $0)
    }
    let fromFile = try Self.check(file ?? [], program, command)
    let fromEnvironment = try Self.check(Self.settings(variables, program), program, command)

    func nearer(_ setting: Setting, _ others: [Setting]) -> Bool {
      command.option(setting.name)?.isRepeating == false && others.contains { $0.name == setting.name }
    }
    let near = fromEnvironment.filter { !nearer($0, given.settings) }
    let added = fromFile.filter { !nearer($0, given.settings + fromEnvironment) } + near
    self.command = command
    name = Array(words.prefix(count))
    self.given = given.words
    self.added = added
    settings = added + given.settings
    hasArguments = given.hasArguments
  }

  /// As it is written on the command line; nothing for a flag that is off.
  private static func word(_ setting: Setting, _ command: CommandSchema) -> String? {
    guard command.option(setting.name)?.isFlag == true else { return "--\(setting.name)=\(setting.value)" }
    return setting.value == "true" ? "--\(setting.name)" : nil
  }

  private static func settings(_ variables: [(name: String, value: String)], _ program: CommandSchema) -> [Setting] {
    let options = program.allOptions
    return variables.flatMap { variable -> [Setting] in
      let name = SettingsEnvironment.option(of: variable.name)
      let known = options.first { $0.name == name }
      if name == "config" || known == nil && SettingsEnvironment.isServiceLink(variable.name) { return [] }
      let values = known?.isRepeating == true ? SettingsEnvironment.values(variable.value) : [variable.value]
      return values.map { Setting(name, $0, .environment(variable.name)) }
    }
  }

  /// Those that this command takes. All have to be known to some command.
  private static func check(
    _ settings: [Setting], _ program: CommandSchema, _ command: CommandSchema
  ) throws -> [Setting] {
    let options = program.allOptions
    var seen: Set<String> = []
    return try settings.filter { setting in
      guard let known = options.first(where: { $0.name == setting.name }) else {
        let meant = nearest(setting.name, among: options.filter(\.isSetting).map(\.name))
        throw setting.source.error(
          "no command has an option '\(setting.name)'\(meant.map { "; is '\($0)' meant?" } ?? "; see --help")")
      }
      guard known.isSetting else {
        throw setting.source.error(
          "'\(setting.name)' is no setting: it concerns one call; give it as --\(setting.name)")
      }
      guard known.isRepeating || seen.insert(setting.name).inserted else {
        throw setting.source.error("a second '\(setting.name)'; remove one")
      }
      guard let own = command.option(setting.name) else { return false }
      guard !own.isFlag || ["true", "false"].contains(setting.value) else {
        throw setting.source.error("'\(setting.name)' is true or false, not '\(setting.value)'")
      }
      return true
    }
  }

  private func parse(_ settings: [Setting], with more: [String]) throws -> any ParsableCommand {
    try EncoderWorker.parseAsRoot(name + settings.compactMap { Self.word($0, command) } + more + given)
  }

  /// Why the parser refuses some of the settings; nil where it does not.
  private func refusal(of settings: [Setting], with more: [String]) -> String? {
    do {
      _ = try parse(settings, with: more)
      return nil
    } catch {
      return EncoderWorker.message(for: error)
    }
  }

  /// The command with all its settings. Where the parser refuses them, the program ends; where it would not without one of them,
  /// it is said where that stands.
  ///
  /// - Parameter more: further words, before those that were given.
  func parsed(with more: [String] = []) -> any ParsableCommand {
    do {
      return try parse(added, with: more)
    } catch {
      let message = EncoderWorker.message(for: error)
      // The nearest one first.
      let blamed = added.indices.last { index in
        refusal(of: Array(added[..<index] + added[(index + 1)...]), with: more) != message
      }
      guard let blamed else { EncoderWorker.exit(withError: error) }
      let text = EncoderWorker.fullMessage(for: error)
        .replacing(message, with: "\("\(added[blamed].source)".oneLine): \(message)", maxReplacements: 1)
      say(lines: text.printable)
      EncoderWorker.exit(withError: EncoderWorker.exitCode(for: error))
    }
  }
}
