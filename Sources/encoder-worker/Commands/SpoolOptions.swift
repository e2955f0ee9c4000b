import ArgumentParser

/// An existing spool, and the output of its workers.
struct SpoolOptions: ParsableArguments {
  @Option(help: .setting("The spool.", valueName: "dir", place: .spool), completion: .directory)
  var spool: String

  @Option(
    name: .shortAndLong, help: .setting("The directory for sessions.", default: "SPOOL/output", valueName: "dir"),
    completion: .directory)
  var output: String?
}
