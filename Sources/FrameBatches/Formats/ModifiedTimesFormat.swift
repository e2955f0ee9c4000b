/// Files whose modification times are their capture times, on request of the user.
package enum ModifiedTimesFormat: BatchFormat {
  package static let name = "times of files"

  package static func read(_ source: BatchSource, limits: Limits) throws -> [BatchDraft]? {
    guard source.options.times == .modified else { return nil }
    var draft = BatchDraft()
    draft.defaultCapture = .onChange
    for path in source.contents.topNames {
      guard let timeMs = try source.contents.modifiedMs(path) else {
        throw BadBatch(
          "read", source.name, "an archive does not keep the times of its files exactly",
          advice: "unpack it, or tell the times with --name-time or --start")
      }
      draft.frames.append(Frame(source: path, path: path, timeMs: timeMs))
    }
    // Copying files in another order, without their times, would reverse a film without a word.
    if let order = NumberedFormat.order(of: draft.frames) { (draft.frames, draft.isListed) = (order, true) }
    return [draft]
  }
}
