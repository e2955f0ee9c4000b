import ArgumentParser
import FrameBatches
import SegmentEncoder

/// Options of the batches or frames that a command is given; the same for every such command.
struct InputOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Session of batches that name none. (default: the batch's name up to @; enqueue makes a new one)",
      valueName: "id"))
  var session: String?

  func validate() throws { try requireSessionID(session) }
}

/// - Throws: wrong usage if `session` cannot name a session.
func requireSessionID(_ session: String?) throws {
  if let session, SessionID(session) == nil { throw ValidationError("--session: \(SessionID.rule)") }
}
