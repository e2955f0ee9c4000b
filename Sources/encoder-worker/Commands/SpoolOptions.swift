import ArgumentParser

/// An existing spool, and the output of its workers.
struct SpoolOptions: ParsableArguments {
  static let spoolHelp = "The spool directory."

  @Option(help: .setting(Self.spoolHelp, valueName: "dir", place: .spool), completion: .directory)
  var spool: String

  @Option(
    name: .shortAndLong, help: .setting("The directory for sessions.", default: "SPOOL/output", valueName: "dir"),
    completion: .directory)
  var output: String?
}
