import ArgumentParser

/// The facts of a command's help that the parser does not know.
struct HelpPage {
  /// A call that works, without the program's name.
  let example: String
  /// The options that a call needs, by name: those of one of the groups.
  var required: [[String]] = []
  /// The options that many calls have, in the order of the help. All others come behind them.
  var common: [String] = []
}

/// A command with a page of help: see ``HelpText``.
protocol DescribedCommand: ParsableCommand {
  static var page: HelpPage { get }
}
