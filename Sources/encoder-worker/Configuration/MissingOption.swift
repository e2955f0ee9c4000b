import ArgumentParser

/// An option that a command needs in some calls only, so that the parser cannot ask for it.
enum MissingOption {
  /// Returns wrong usage in the parser's words.
  static func error(_ option: String, _ help: String) -> ValidationError {
    ValidationError("Missing expected argument '\(option)'\nHelp:  \(option)  \(help)")
  }
}
