/// Rejourney's stream of frames, named `<session>-<end ms>.tar.gz`, although it is no tar. The session is named
/// `session_<start ms>_<32 hex>`; the instants count from its start.
package enum RejourneyFramesFormat: BatchFormat {
  package static let name = "Rejourney frames"

  package static func read(_ source: BatchSource, limits: Limits) throws -> [BatchDraft]? {
    guard let stream = try FrameStream(of: source, limits: limits), stream.isRejourney else { return nil }
    let session = source.nameBeforeDash ?? source.name
    let parts = session.split(separator: "_", omittingEmptySubsequences: false)
    guard parts.count == 3, parts[0] == "session", let start = Int64(parts[1]), start > 0 else {
      throw BadBatch(
        "read", source.name, "instants from a session's start, which the name does not tell",
        advice: "name it session_<start ms>_<32 hex>-<end ms>")
    }
    var draft = stream.draft(named: source.name, epoch: start)
    draft.session = session
    return [draft]
  }
}
