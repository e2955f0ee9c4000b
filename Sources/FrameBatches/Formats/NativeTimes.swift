import JSON

/// The capture times of files without a time in `batch.json`: from their names, or from the source that `batch.json` states.
struct NativeTimes {
  /// The frames with a time, by path.
  private(set) var frames: [String: Frame] = [:]
  /// Files without a time, by path.
  private(set) var refused: [String: RefusedFrame] = [:]

  /// For a batch whose frames all have a time in `batch.json`.
  init() {}

  /// - Parameters:
  ///   - draft: the facts of the batch in `batch.json`.
  ///   - path: the path of `batch.json` itself.
  init(_ json: JSONValue, _ draft: BatchDraft, _ source: BatchSource, except path: String, limits: Limits) throws {
    var source = source
    source.isDescribed = true
    let nameTime = try json.optional("nameTime", .string)
    let times = try json.optional("times", .string)
    let start = try json.optional("start", .scalar)
    let fps = try json.optional("fps", .scalar)
    let timeZone = try json.optional("timeZone", .string)
    if [nameTime, times, start, fps].contains(where: { $0 != nil }) { source.options.times = nil }
    source.options.intervalMs = draft.intervalMs ?? source.options.intervalMs
    do {
      try source.options.setTimes(nameTime: nameTime, times: times, start: start, fps: fps, timeZone: timeZone)
    } catch {
      throw JSONError("\(error.name.rawValue): \(error.cause)")
    }
    let isExplicit = source.options.times != nil
    let formats: [any BatchFormat.Type] =
      isExplicit
      ? [
        NumberedFormat.self, ModifiedTimesFormat.self, ExifTimesFormat.self, NamedTimesFormat.self,
      ] : [PlainFormat.self]
    var drafts = try formats.lazy.compactMap { try $0.read(source, limits: limits) }.first ?? []
    let isPlain = !isExplicit && !drafts.isEmpty
    if drafts.isEmpty && !isExplicit { drafts = try NamedTimesFormat.read(source, limits: limits) ?? [] }
    guard drafts.count <= 1 else {
      throw JSONError("nameTime: the names are of \(drafts.count) sessions, and batch.json is of one")
    }
    for draft in drafts {
      for frame in draft.frames where frame.paths[0] != path { frames[frame.paths[0]] = frame }
      for each in draft.refused where !isPlain { refused[each.source] = each }
    }
  }
}
