/// D: OpenReplay's frames, called `<session>-<last ms>.gz` or something that does not tell the session.
package enum OpenReplayFramesFormat: BatchFormat {
  package static let name = "OpenReplay frames"

  package static func read(_ source: BatchSource, limits: Limits) throws -> [BatchDraft]? {
    guard let stream = try FrameStream(of: source, limits: limits), !stream.isRejourney else { return nil }
    var draft = stream.draft(named: source.name, epoch: 0)
    draft.session = source.nameBeforeDash
    return [draft]
  }
}
