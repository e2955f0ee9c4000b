// Turns a `batch.json` into the draft of its batch: the facts of the batch, then each entry of `frames`, then the files that no
// entry names.

import JSON

/// A `batch.json` of which some entries are read.
struct NativeDraft {
  private let limits: Limits
  private let units: NativeUnits
  private let times: NativeTimes
  /// The directory of `batch.json`, with its slash; empty at the top level. Files of entries are relative to it.
  private let folder: String
  private var draft: BatchDraft
  /// The paths of `batch.json` and of the files that entries name.
  private var known: Set<String>
  /// The files of entries with one image.
  private var shown: Set<String> = []
  /// The unknown keys of the batch and of its entries.
  private var unknown: [UnknownKey]

  /// - Parameter path: the path of `batch.json` in the batch.
  /// - Throws: ``JSONError`` if the batch as a whole cannot be used.
  static func read(_ json: JSONValue, at path: String, _ source: BatchSource, _ limits: Limits) throws -> BatchDraft {
    let facts = try facts(in: json, limits)
    let entries = try json.optional("frames", .array)
    var reading = try NativeDraft(json, facts, entries, at: path, source, limits)
    for (index, entry) in (entries ?? []).enumerated() { try reading.add(entry, at: "frames[\(index)]") }
    reading.addFilesWithoutEntry(source.contents.topNames)
    reading.draft.warnings += UnknownKey.warnings(of: reading.unknown)
    return reading.draft
  }

  private init(
    _ json: JSONValue, _ facts: BatchDraft, _ entries: [JSONValue]?, at path: String, _ source: BatchSource,
    _ limits: Limits
  ) throws {
    self.limits = limits
    units = NativeUnits(json, limits: limits)
    draft = facts
    draft.isListed = entries != nil
    folder = String(path.dropLast(NativeFormat.description.count))
    known = [path]
    unknown = NativeKeys.unknown(inBatch: json)
    // A key of the batch does not say which frames it hides.
    if let key = unknown.first(where: \.mayHide) {
      throw JSONError("\(key.place) is not known, and may have been meant to hide something; masks belong to frames")
    }
    // If all frames have `timeMs`, their names are not read: a local time without its zone is no error then.
    let isTimed = entries?.allSatisfy { $0.object?["timeMs"] != nil } ?? false
    times = try isTimed ? NativeTimes() : NativeTimes(json, draft, source, except: path, limits: limits)
    draft.endMs = draft.endMs ?? times.listed.endMs
    draft.warnings += times.listed.warnings
    known.formUnion(times.listed.sideFiles)
    draft.pointers = NativePointers.read(json, units)
    if let labels = json.object?["labels"], labels != .null {
      if let entries = labels.array {
        draft.labels.add(entries, of: "labels")
      } else {
        draft.labels.omit("labels is not a list")
      }
    }
  }

  // MARK: - The batch

  /// Returns the facts of the batch as a whole.
  private static func facts(in json: JSONValue, _ limits: Limits) throws -> BatchDraft {
    let version = try json.required("version", .integer)
    guard version == 1 else { throw JSONError("version \(version) is not known; 1 is") }
    var draft = BatchDraft()
    draft.session = try json.optional("session", .string)
    draft.intervalMs = try json.optional("intervalMs", .integer)
    draft.endMs = try json.optional("endMs", .integer)
    draft.isEndOpen = try json.optional("endIsOpen", .bool) ?? false
    draft.clockOffsetMs = try json.optional("clockOffsetMs", .integer) ?? 0
    if let word = try json.optional("capture", .string) {
      guard let capture = Batch.Capture(rawValue: word) else {
        throw JSONError("capture: \"\(word.prefix(40))\" is neither interval nor onChange")
      }
      draft.capture = capture
    }
    draft.isFinal = try json.optional("final", .bool)
    draft.grows = try json.optional("grows", .bool) ?? false
    draft.metadata = try metadata(of: json, limits: limits)
    // The times of a batch without local times do not need the zone.
    draft.timeZone = json.object?["timeZone"]?.string.flatMap { try? ZoneRules(named: $0) }?.description
    if let value = json.object?[TraceParent.key], value != .null {
      draft.traceParent = value.string.flatMap(TraceParent.init)
      // The pictures matter more than their trace.
      if draft.traceParent == nil {
        draft.warnings.append("batch.json: traceparent is not one of W3C Trace Context, version 00, and is ignored")
      }
    }
    return draft
  }

  private static func metadata(of json: JSONValue, limits: Limits) throws(JSONError) -> JSONValue {
    guard let metadata = json.object?["metadata"], metadata != .null else { return .object([:]) }
    guard metadata.isStrict else { throw JSONError("metadata: NaN and Infinity are no JSON") }
    let size = metadata.bytes().count
    guard size <= limits.metadataBytes else {
      throw JSONError("metadata: \(size) bytes, more than the limit of \(limits.metadataBytes)")
    }
    return metadata
  }

  // MARK: - Entries

  /// Adds an entry of `frames`, or the reason to refuse it.
  ///
  /// - Throws: ``JSONError`` for an entry that names no file.
  private mutating func add(_ entry: JSONValue, at place: String) throws {
    let unknownHere = NativeKeys.unknown(inFrame: entry, place + ".")
    unknown += unknownHere
    guard let files = Self.files(of: entry) else {
      throw JSONError("\(place): no \"file\", nor layers that each have one")
    }
    let source = files.isEmpty ? place : files.joined(separator: "+").shortened(to: limits.nameBytes)
    // An unchanged window can be a layer of many frames.
    known.formUnion(files.map { folder + $0 })
    do throws(JSONError) {
      draft.frames.append(try frame(of: entry, files, named: source, hiddenBy: unknownHere.first(where: \.mayHide)))
    } catch {
      draft.refused.append(RefusedFrame(source: source, reason: "\(place): \(error)", kind: .record))
      if Self.mayHide(entry, unknownHere) { hideEvents(at: entry, place) }
    }
  }

  /// - Parameter key: an unknown key that may be meant to hide something.
  private mutating func frame(
    of entry: JSONValue, _ files: [String], named source: String, hiddenBy key: UnknownKey?
  ) throws(JSONError) -> Frame {
    guard files.allSatisfy({ $0.utf8.count <= limits.pathBytes && !$0.utf8.contains(0) }) else {
      throw JSONError("no name that a file can have")
    }
    guard !files.contains(where: { "/\($0)/".contains("/./") || "/\($0)/".contains("/../") }) else {
      throw JSONError("a path with . or .. in it")
    }
    let isLayered = entry.object?["layers"]?.array != nil
    guard isLayered || shown.insert(files[0]).inserted else { throw JSONError("listed twice") }
    let named = files.count == 1 ? times.frames[folder + files[0]] : nil
    let timeMs = try Self.instant(of: entry, named: source, named, limits: limits)
    let frame = try NativeFrame(entry, units, hiddenBy: key)
    return Frame(
      source: source, paths: frame.files.map { folder + $0 }, timeMs: timeMs, look: frame.look, note: named?.note)
  }

  /// Hides the pointer events of a refused entry: its masks were on screen, too.
  private mutating func hideEvents(at entry: JSONValue, _ place: String) {
    if let timeMs = entry.object?["timeMs"]?.integer, limits.instants.contains(timeMs) {
      draft.blindMs.append(timeMs)
    } else {
      draft.pointers.omitAll("\(place) is refused, and has masks")
    }
  }

  /// Returns the files of an entry, or of its layers; nil if a file is missing.
  private static func files(of entry: JSONValue) -> [String]? {
    guard let layers = entry.object?["layers"], layers != .null else {
      return entry.object?["file"]?.string.map { [NativeFormat.plain($0)] }
    }
    let files = (layers.array ?? []).compactMap { $0.object?["file"]?.string }.map(NativeFormat.plain)
    return files.count == layers.array?.count ? files : nil
  }

  /// Whether an entry has masks, or keys that may be meant as such.
  private static func mayHide(_ entry: JSONValue, _ unknown: [UnknownKey]) -> Bool {
    let layers = entry.object?["layers"]?.array ?? []
    return unknown.contains(where: \.mayHide) || ([entry] + layers).contains { $0.object?["masks"] != nil }
  }

  /// - Parameter named: the frame with the time that its name tells.
  private static func instant(
    of entry: JSONValue, named file: String, _ named: Frame?, limits: Limits
  ) throws(JSONError) -> Int64 {
    if let value = entry.object?["timeMs"] {
      if let timeMs = value.integer { return timeMs }
      throw JSONError("timeMs \(value.line.prefix(40)) is not a whole number of milliseconds")
    }
    guard let instant = named?.timeMs ?? PlainFormat.instant(ofName: file), limits.instants.contains(instant) else {
      throw JSONError("no timeMs, and the name is not <unix ms>.jpg")
    }
    return instant
  }

  // MARK: - Files without an entry

  /// Adds files that no entry names: as frames if the batch lists none, else as refused.
  private mutating func addFilesWithoutEntry(_ names: [String]) {
    for name in names where !known.contains(name) {
      if draft.isListed {
        draft.refused.append(RefusedFrame(source: name, reason: "not listed in \(NativeFormat.description)"))
      } else if let frame = times.frames[name] {
        draft.frames.append(frame)
      } else {
        draft.refused.append(
          times.refused[name] ?? RefusedFrame(source: name, reason: "the name carries no instant"))
      }
    }
  }
}
