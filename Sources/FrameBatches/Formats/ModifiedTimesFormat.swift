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
    if let order = order(of: draft.frames) { (draft.frames, draft.isListed) = (order, true) }
    return [draft]
  }

  /// Returns files in the order of the numbers in their names; nil unless the names differ in one number only.
  private static func order(of frames: [Frame]) -> [Frame]? {
    var numbered: [(number: Int64, frame: Frame)] = []
    var forms: Set<String> = []
    for frame in frames {
      guard let number = NumberedFormat.number(in: frame.source) else { return nil }
      numbered.append((number, frame))
      forms.insert(NumberedFormat.form(of: frame.source))
    }
    guard forms.count == 1, Set(numbered.map(\.number)).count == numbered.count else { return nil }
    if let counter = RolledCounter(of: frames.map(\.source)) {
      for index in numbered.indices { numbered[index].number = counter.count(numbered[index].number) }
    }
    return numbered.sorted { $0.number < $1.number }.map(\.frame)
  }
}
