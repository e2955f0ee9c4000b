import ArgumentParser
import FrameBatches

/// The sessions that a call is about.
struct SessionArguments: ParsableArguments {
  @Argument(help: ArgumentHelp("IDs of sessions.", valueName: "session"))
  var sessions: [String]

  /// Each session once.
  var ids: [SessionID] {
    sessions.compactMap { SessionID($0) }.reduce(into: []) { ids, id in if !ids.contains(id) { ids.append(id) } }
  }

  func validate() throws {
    for session in sessions where SessionID(session) == nil {
      throw ValidationError("'\(session)' is no session's id; \(SessionID.rule), and name its directory with --output")
    }
  }
}
