import FileSystem
import JSON

/// The capture times of files without a time in `batch.json`: from their names, or from the source that `batch.json` states.
struct NativeTimes {
  /// The frames with a time, by path.
  private(set) var frames: [String: Frame] = [:]
  /// Files without a time, by path.
  private(set) var refused: [String: RefusedFrame] = [:]
  /// Facts of a list of times: its end, its own file, its lines that cannot be used.
  private(set) var listed = BatchDraft()

  /// For a batch whose frames all have a time in `batch.json`.
  init() {}

  /// - Parameters:
  ///   - draft: the facts of the batch in `batch.json`.
  ///   - path: the path of `batch.json` itself.
  init(_ json: JSONValue, _ draft: BatchDraft, _ source: BatchSource, except path: String, limits: Limits) throws {
    var source = source
    source.isDescribed = true
    let contents = source.contents
    let nameTime = try json.optional("nameTime", .string)
    let times = try json.optional("times", .string)
    let start = try json.optional("start", .scalar)
    let fps = try json.optional("fps", .scalar)
    let timeZone = try json.optional("timeZone", .string)
    if [nameTime, times, start, fps].contains(where: { $0 != nil }) { source.options.times = nil }
    source.options.intervalMs = draft.intervalMs ?? source.options.intervalMs
    do {
      try source.options.setTimes(nameTime: nameTime, times: times, start: start, fps: fps, timeZone: timeZone) {
        name, zone throws(InvalidOption) in
        try Self.list(named: name, beside: path, in: contents, zone: zone, limits)
      }
    } catch {
      throw JSONError("\(error.name.rawValue): \(error.cause)")
    }
    let isExplicit = source.options.times != nil
    let formats: [any BatchFormat.Type] =
      isExplicit
      ? [
        NumberedFormat.self, ModifiedTimesFormat.self, ExifTimesFormat.self, ListedTimesFormat.self,
        NamedTimesFormat.self,
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
      if case .list? = source.options.times { listed = draft }
    }
  }

  /// Reads a list in the batch. Its name counts from `batch.json`.
  private static func list(
    named name: String, beside path: String, in contents: any BatchContents, zone: ZoneRules?, _ limits: Limits
  ) throws(InvalidOption) -> TimeList? {
    let own = String(path.dropLast(NativeFormat.description.count)) + NativeFormat.plain(name)
    guard contents.names.contains(own) else { return nil }
    let file: FileContents?
    do { file = try contents.contents(of: own, limit: min(limits.fileBytes, TimeList.mostBytes)) } catch {
      throw InvalidOption(.times, "\(error)")
    }
    guard case .bytes(let bytes)? = file else { return nil }
    return try TimeList(bytes, at: .batch(own), zone: zone)
  }
}
