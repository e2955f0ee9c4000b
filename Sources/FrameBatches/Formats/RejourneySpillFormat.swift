// Rejourney: frames that the recorder could not send, in a directory `<session>/frames/<unix ms>.jpeg`.

package enum RejourneySpillFormat: BatchFormat {
  package static let name = "Rejourney spill"

  package static func read(_ source: BatchSource, limits: Limits) throws -> [BatchDraft]? {
    let frames = source.contents.names.filter { $0.hasPrefix("frames/") }
    guard source.contents.topNames.allSatisfy({ PlainFormat.instant(ofName: $0) == nil }) else { return nil }
    let draft = PlainFormat.draft(of: frames)
    return PictureNames.areMostly(draft.frames.count, of: source.contents.names) ? [draft] : nil
  }
}
