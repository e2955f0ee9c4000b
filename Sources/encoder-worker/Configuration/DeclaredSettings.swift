import ArgumentParser

/// The options of all commands, by name: one file, and one environment, serve all commands.
struct DeclaredSettings {
  private let options: [CommandSchema.Option]
  /// An option that is a setting of one command and not of another counts as a setting.
  private let byName: [String: CommandSchema.Option]

  init(_ program: CommandSchema) {
    options = program.allOptions
    byName = Dictionary(options.map { ($0.name, $0) }) { $0.isSetting || !$1.isSetting ? $0 : $1 }
  }

  /// Returns the settings that variables name, also those that no command has.
  func settings(in variables: [(name: String, value: String)]) -> [Setting] {
    variables.flatMap { variable -> [Setting] in
      let name = SettingsEnvironment.option(of: variable.name)
      let option = byName[name]
      if name == "config" || option == nil && SettingsEnvironment.isServiceLink(variable.name) { return [] }
      let values = option?.isRepeating == true ? SettingsEnvironment.values(variable.value) : [variable.value]
      return values.map { Setting(name, $0, .environment(variable.name)) }
    }
  }

  /// Returns the settings that a command takes.
  ///
  /// - Parameters:
  ///   - settings: from one source.
  ///   - names: the names of the settings from all sources.
  /// - Throws: a usage error about one that is no setting of any command, that has another name now, or that is given twice.
  func checked(_ settings: [Setting], for command: CommandSchema, beside names: Set<String>) throws -> [Setting] {
    var seen: Set<String> = []
    return try settings.filter { setting in
      let isSetting = byName[setting.name]?.isSetting == true
      if let former = FormerNames.row(ofSetting: setting.name, isSetting: isSetting, for: command.name),
        let now = former.newOption, byName[now]?.isSetting == true, !isSetting || !names.contains(now)
      {
        throw setting.source.error("'\(setting.name)' of \(former.words[0]) is now '\(now)'")
      }
      guard let option = byName[setting.name], option.isSetting else { throw refusal(of: setting) }
      guard option.isRepeating || seen.insert(setting.name).inserted else {
        throw setting.source.error("a second '\(setting.name)'; remove one")
      }
      guard let own = command.option(setting.name), own.isSetting else { return false }
      guard !own.isFlag || ["true", "false"].contains(setting.value) else {
        throw setting.source.error("'\(setting.name)' is true or false, not '\(setting.value)'")
      }
      return true
    }
  }

  private func refusal(of setting: Setting) -> ValidationError {
    let name = setting.name
    if byName[name] != nil {
      return setting.source.error("'\(name)' is no setting: it concerns one call; give it as --\(name)")
    }
    if let now = FormerNames.row(ofSetting: name, isSetting: false, for: "")?.newOption {
      return setting.source.error("'\(name)' is no setting: it concerns one call; give it as --\(now)")
    }
    let meant = nearest(name, among: options.filter(\.isSetting).map(\.name))
    return setting.source.error(
      "no command has an option '\(name)'\(meant.map { "; is '\($0)' meant?" } ?? "; see --help")")
  }
}
