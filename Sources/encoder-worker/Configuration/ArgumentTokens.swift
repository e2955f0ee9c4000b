/// The words of a call after the command's name. The parser does not tell which options they name, and does not know
/// `--drain=false`, which switches off a flag that a file or a variable sets.
struct ArgumentTokens {
  /// The words for the parser: without `=true` and `=false` of flags.
  private(set) var words: [String] = []
  private(set) var settings: [Setting] = []
  /// The options that the command does not have, as written, without their values.
  private(set) var unknown: [String] = []
  /// Whether there are words that are no options.
  private(set) var hasArguments = false

  init(_ all: ArraySlice<String>, of command: CommandSchema) {
    var rest = all
    while let word = rest.popFirst() {
      words.append(word)
      if word == "--" {
        hasArguments = hasArguments || !rest.isEmpty
        words += rest
        return
      }
      guard word.hasPrefix("-"), word != "-" else {
        hasArguments = true
        continue
      }
      let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      let name = parts[0].drop { $0 == "-" }
      // `-vj 4` is `-v` and `-j 4`.
      let options = word.hasPrefix("--") ? [command.option(String(name))] : name.map { command.option($0) }
      for case let option? in options.dropLast() { settings.append(Setting(option.name, "true", .flag)) }
      guard case let option?? = options.last else {
        unknown.append(parts[0])
        continue
      }
      var value = parts.count > 1 ? parts[1] : option.isFlag ? "true" : ""
      if parts.count == 1, !option.isFlag, let next = rest.popFirst() {
        words.append(next)
        value = next
      }
      settings.append(Setting(option.name, value, .flag))
      if option.isFlag, parts.count > 1, ["true", "false"].contains(value) {
        words.removeLast()
        if value == "true" { words.append("--\(option.name)") }
      }
    }
  }
}
