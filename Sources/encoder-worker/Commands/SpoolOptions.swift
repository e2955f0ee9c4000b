/// A spool of a command.
enum SpoolOptions {
  static let spoolHelp = "The spool directory."
}
