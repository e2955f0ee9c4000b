/// An option of a command, with its values in one call.
struct ResolvedOption {
  let option: CommandSchema.Option
  /// The values in force, nearest last; several only of an option that may be repeated. Empty if none is given.
  let given: [Setting]

  /// - Parameter given: the option's values from all sources that no nearer source overrides.
  init(_ option: CommandSchema.Option, _ given: [Setting]) {
    self.option = option
    // Of values with the same key, such as `side=4096` and `side=2000`, the last one is in force.
    func key(_ setting: Setting) -> Substring { setting.value.prefix { $0 != "=" } }
    self.given =
      option.isRepeating
      ? given.enumerated().filter { index, setting in !given[(index + 1)...].contains { key($0) == key(setting) } }
        .map(\.element) : given
  }

  /// The values in force, or the default.
  var values: [(value: String?, source: Setting.Source)] {
    given.isEmpty ? [(option.defaultValue, .defaultValue)] : given.map { ($0.value, $0.source) }
  }
}
