import ArgumentParser
import Encoding
import FrameBatches

/// The session that a command reads; the same for all that also read finished segments.
struct SessionSource: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "A published session, OUTPUT/SESSION, or finished segments; with --store, its ID.", valueName: "session-dir"),
    completion: .directory)
  var session: String

  @OptionGroup var place: SessionStoreOptions

  func validate() throws { _ = try place.session(session) }

  /// Calls `body` with the path of the session, or of a copy of a stored one.
  ///
  /// - Parameters:
  ///   - takesSegments: whether finished segments are published first, for the time of the call.
  ///   - needs: what is copied of a stored session.
  func withSession(
    _ sandbox: SandboxOptions, _ decoders: DecoderForkServer?, takesSegments: Bool = true,
    needing needs: @autoclosure () throws -> StoredNeeds, _ body: (_ path: String) throws -> Void
  ) throws {
    if let id = try place.session(session) { return try place.withCopy(of: id, needs(), body) }
    guard takesSegments else { return try body(session) }
    try SegmentsFolder.withSession(session, sandbox, decoders, body)
  }
}
