/// D: OpenReplay's frames, called `<session>-<last ms>.gz` or something that does not tell the session.
enum OpenReplayFramesFormat: BatchFormat {
  static let name = "OpenReplay frames"

  static func read(_ source: BatchSource, limits: Limits) throws -> BatchDraft? {
    guard let stream = source.contents.stream.flatMap({ FrameStream($0) }), !stream.isRejourney else { return nil }
    var draft = stream.draft(named: source.name, epoch: 0)
    draft.session = source.nameBeforeDash
    return draft
  }
}
