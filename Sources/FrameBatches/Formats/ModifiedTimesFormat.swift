import FileSystem

/// Files whose modification times are their capture times, on request of the user.
package enum ModifiedTimesFormat: BatchFormat {
  package static let name = "times of files"

  package static func read(_ source: BatchSource, limits: Limits) throws -> [BatchDraft]? {
    guard source.options.times == .modified else { return nil }
    var draft = BatchDraft()
    draft.defaultCapture = .onChange
    for path in source.contents.topNames where !(source.isDescribed && NativeFormat.isDescription(path)) {
      guard let timeMs = try source.contents.modifiedMs(path) else {
        throw BadBatch(
          "read", source.name, "an archive does not keep the times of its files exactly",
          advice: "unpack it, or tell the times with --name-time or --start")
      }
      draft.frames.append(Frame(source: path, path: path, timeMs: timeMs))
    }
    let times = draft.frames.map(\.timeMs)
    if let same = ModifiedTimes.sameTime(of: times) { throw fault(same, of: times.count, source, limits) }
    draft.warnings = ModifiedTimes.warning(on: times).map { [$0] } ?? []
    // Copying files in another order, without their times, would reverse a film without a word.
    var order = NumberedFormat.order(of: draft.frames)
    let series = order == nil ? NameSeries.ofNames(draft.frames.map(\.paths[0])) : []
    if let thumbnails = try Thumbnails(of: series, in: source.contents) {
      let small = Set(thumbnails.refused.map(\.source))
      draft.frames.removeAll { small.contains($0.paths[0]) }
      draft.refused += thumbnails.refused
      order = NumberedFormat.order(of: draft.frames)
    } else if let warning = InterleavedSources.warning(on: draft.frames, of: series, source) {
      draft.warnings.append(warning)
    }
    draft.isListed = order != nil
    draft.frames = spread(
      order ?? draft.frames.sorted { ModifiedTimes.isBefore($0.source, $1.source) }, &draft.warnings)
    return [draft]
  }

  private static func spread(_ frames: [Frame], _ warnings: inout [String]) -> [Frame] {
    let times = ModifiedTimes.spread(frames.map { ($0.source, $0.timeMs) })
    let moved = zip(frames, times).filter { $1.note != nil }
    if moved.isMany(of: frames.count) {
      warnings.append(
        "\(moved.count) of \(frames.count) files share their modification time with others, the first is \(moved[0].0.source): "
          + "they were spread over its second in the order of their names")
    }
    return zip(frames, times).map { frame, time in
      Frame(source: frame.source, paths: frame.paths, timeMs: time.timeMs, look: frame.look, note: time.note)
    }
  }

  private static func fault(
    _ same: (count: Int, timeMs: Int64), of total: Int, _ source: BatchSource, _ limits: Limits
  ) -> BadBatch {
    let names = NameAdvice(for: source, limits: limits)
    let remedy =
      names.patternForAll.map { "read the names with \($0)" }
      ?? names.numbering ?? NameAdvice.renaming
    let day = CivilTime.date(ofDay: same.timeMs.flooredDivision(by: 86_400_000))
    return BadBatch(
      "read", source.name,
      "\(same.count) of \(total) files have one modification time, on \(day), as after unpacking or cloning: it orders nothing",
      advice: remedy)
  }
}
