import ArgumentParser

/// The session that a command reads; the same for all that also read finished segments.
struct SessionSource: ParsableArguments {
  @Argument(
    help: ArgumentHelp("A published session, OUTPUT/SESSION, or finished segments.", valueName: "session-dir"),
    completion: .directory)
  var session: String
}
