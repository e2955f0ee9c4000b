/// OpenReplay's stream of frames, named `<session>-<last ms>.gz`, or with a name that does not contain the session.
package enum OpenReplayFramesFormat: BatchFormat {
  package static let name = "OpenReplay frames"

  package static func read(_ source: BatchSource, limits: Limits) throws -> [BatchDraft]? {
    guard let stream = try FrameStream(of: source, limits: limits), !stream.isRejourney else { return nil }
    var draft = stream.draft(named: source.name, epoch: 0)
    draft.session = source.nameBeforeDash
    return [draft]
  }
}
