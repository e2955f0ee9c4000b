/// The words of a call behind the command's name, told apart.
///
/// `--drain=false` and `--drain=true`, which the parser does not know, are taken here, so that a flag that a file or a
/// variable sets can be switched off.
struct ArgumentTokens {
  /// For the parser.
  private(set) var words: [String] = []
  private(set) var settings: [Setting] = []
  /// Whether there are words that are no options.
  private(set) var hasArguments = false

  init(_ all: ArraySlice<String>, of command: CommandSchema) {
    var rest = all
    while let word = rest.popFirst() {
      guard word != "--" else {
        hasArguments = hasArguments || !rest.isEmpty
        words += [word] + rest
        return
      }
      guard word.hasPrefix("-"), word != "-" else {
        hasArguments = true
        words.append(word)
        continue
      }
      let sign = word.firstIndex(of: "=")
      let name = String(word[..<(sign ?? word.endIndex)].drop { $0 == "-" })
      let value = sign.map { String(word[word.index(after: $0)...]) }
      // `-vj 4` is `-v` and `-j 4`.
      let options = word.hasPrefix("--") ? [command.option(name)] : name.map { command.option($0) }
      for case let option? in options.dropLast() { settings.append(Setting(option.name, "true", .flag)) }
      guard case let option?? = options.last else {
        words.append(word)
        continue
      }
      if option.isFlag {
        settings.append(Setting(option.name, value ?? "true", .flag))
        switch value {
        case "true": words.append("--\(option.name)")
        case "false": break
        default: words.append(word)
        }
      } else {
        words.append(word)
        if value == nil, let next = rest.popFirst() {
          words.append(next)
          settings.append(Setting(option.name, next, .flag))
        } else {
          settings.append(Setting(option.name, value ?? "", .flag))
        }
      }
    }
  }
}
