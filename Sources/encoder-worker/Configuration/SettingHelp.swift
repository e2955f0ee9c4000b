import ArgumentParser

extension ArgumentHelp {
  /// The help of an option that is a setting: a file and the environment may set it, too. Every other option concerns
  /// one call. An option that removes, reverses, or names the one thing that a call is about is never a setting.
  static func setting(_ abstract: String, valueName: String? = nil) -> ArgumentHelp {
    ArgumentHelp(abstract, discussion: SettingMark.isShown ? SettingMark.text : nil, valueName: valueName)
  }
}

/// The mark of settings in the parser's dump. Help for people never has it: only `CommandSchema` shows it, to itself.
enum SettingMark {
  static let text = "setting"

  @TaskLocal static var isShown = false
}
