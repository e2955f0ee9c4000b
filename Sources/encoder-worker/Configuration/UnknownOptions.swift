import ArgumentParser

/// Options of a call that its command does not have. The parser tells of a missing option before it looks at them.
enum UnknownOptions {
  /// Returns the parser's message with the first unknown option named before what is missing; nil if that is no fault of the call.
  static func text(blaming error: any Error, _ words: [String], of root: any ParsableCommand.Type) -> String? {
    let message = root.message(for: error)
    guard message.hasPrefix("Missing "), let program = try? CommandSchema.program(root) else { return nil }
    let (command, count) = program.find(words[...])
    guard let option = ArgumentTokens(words.dropFirst(count), of: command).unknown.first else { return nil }
    let meant = nearest(option, among: command.options.map(\.name)).map { " Did you mean '--\($0)'?" } ?? ""
    return root.fullMessage(for: error)
      .replacing(message, with: "Unknown option '\(option)'.\(meant) \(message)", maxReplacements: 1).printable
  }
}
