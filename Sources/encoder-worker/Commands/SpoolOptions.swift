import ArgumentParser

/// A spool that is there, and the output of its workers; the same for every command that looks at both.
struct SpoolOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The spool.", valueName: "dir"), completion: .directory)
  var spool: String

  @Option(
    name: .shortAndLong, help: ArgumentHelp("The directory for sessions. (default: SPOOL/output)", valueName: "dir"),
    completion: .directory)
  var output: String?
}
