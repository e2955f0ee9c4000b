// The format of this program: frames and a `batch.json` that describes them. In an archive they may lie in a directory; `file` is
// then relative to the directory of `batch.json`.

import FileSystem
import JSON

package enum NativeFormat: BatchFormat {
  package static let name = "native"
  package static let description = "batch.json"

  /// Whether a file is a `batch.json`, or was meant to be one.
  static func isDescription(_ name: String) -> Bool { lastComponent(of: name).lowercased().hasPrefix(description) }

  package static func read(_ source: BatchSource, limits: Limits) throws -> [BatchDraft]? {
    let contents = source.contents
    let candidates = contents.topNames.filter { lastComponent(of: $0) == description }
    guard let path = candidates.first else { return nil }
    let folder = String(path.dropLast(description.count))
    do {
      let json = try JSONParser.parse(try bytes(of: path, in: contents, limits: limits))
      return [try draft(from: json, path: path, folder: folder, source, limits)]
    } catch let error as JSONError {
      throw BadBatch("read", path, error.description, advice: "write batch.json as docs/input-formats.md says")
    }
  }

  /// Returns the text of a `batch.json` that states all facts of a batch of single images.
  package static func description(of batch: Batch) -> [UInt8] {
    // Of two files at one instant, the later one in the list is shown.
    let frames = batch.frames.enumerated().sorted { ($0.element.timeMs, -$0.offset) < ($1.element.timeMs, -$1.offset) }
    return JSONValue.object([
      "version": .number(1), "session": .string(batch.session.description), "intervalMs": .number(batch.intervalMs),
      "endMs": .number(batch.endMs), "capture": .string(batch.capture.rawValue), "final": .bool(batch.isFinal),
      "frames": .array(
        frames.map { .object(["file": .string($0.element.paths[0]), "timeMs": .number($0.element.timeMs)]) }),
    ]).bytes(pretty: true) + [UInt8(ascii: "\n")]
  }

  private static func draft(
    from json: JSONValue, path: String, folder: String, _ source: BatchSource, _ limits: Limits
  ) throws -> BatchDraft {
    let contents = source.contents
    let version = try json.required("version", .integer)
    guard version == 1 else { throw JSONError("version \(version) is not known; 1 is") }
    var draft = BatchDraft()
    draft.session = try json.optional("session", .string)
    draft.intervalMs = try json.optional("intervalMs", .integer)
    draft.endMs = try json.optional("endMs", .integer)
    if let word = try json.optional("capture", .string) {
      guard let capture = Batch.Capture(rawValue: word) else {
        throw JSONError("capture: \"\(word.prefix(40))\" is neither interval nor onChange")
      }
      draft.capture = capture
    }
    draft.isFinal = try json.optional("final", .bool)
    draft.metadata = try metadata(of: json, limits: limits)

    var known: Set<String> = [path]
    let listed = try json.optional("frames", .array)
    draft.isListed = listed != nil
    let units = NativeUnits(json, limits: limits)
    var unknown = NativeKeys.unknown(inBatch: json)
    // A key of the batch does not say which frames it hides.
    if let key = unknown.first(where: \.mayHide) {
      throw JSONError("\(key.place) is not known, and may have been meant to hide something; masks belong to frames")
    }
    // If all frames have `timeMs`, their names are not read: a local time without its zone is no error then.
    let isTimed = listed?.allSatisfy { $0.object?["timeMs"] != nil } ?? false
    let times = try isTimed ? NativeTimes() : NativeTimes(json, draft, source, except: path, limits: limits)
    draft.pointers = NativePointers.read(json, units)
    var shown: Set<String> = []
    for (index, entry) in (listed ?? []).enumerated() {
      let place = "frames[\(index)]"
      let unknownHere = NativeKeys.unknown(inFrame: entry, place + ".")
      unknown += unknownHere
      guard let files = files(of: entry) else {
        throw JSONError("\(place): no \"file\", nor layers that each have one")
      }
      let source = files.isEmpty ? place : files.joined(separator: "+").shortened(to: limits.nameBytes)
      let isLayered = entry.object?["layers"]?.array != nil
      // An unchanged window can be a layer of many frames.
      known.formUnion(files.map { folder + $0 })
      do throws(JSONError) {
        guard files.allSatisfy({ $0.utf8.count <= limits.pathBytes && !$0.utf8.contains(0) }) else {
          throw JSONError("no name that a file can have")
        }
        guard !files.contains(where: { "/\($0)/".contains("/./") || "/\($0)/".contains("/../") }) else {
          throw JSONError("a path with . or .. in it")
        }
        guard isLayered || shown.insert(files[0]).inserted else { throw JSONError("listed twice") }
        let named = files.count == 1 ? times.frames[folder + files[0]] : nil
        let timeMs = try instant(of: entry, named: source, named, limits: limits)
        let frame = try NativeFrame(entry, units, hiddenBy: unknownHere.first(where: \.mayHide))
        draft.frames.append(
          Frame(
            source: source, paths: frame.files.map { folder + $0 }, timeMs: timeMs, look: frame.look, note: named?.note)
        )
      } catch {
        draft.refused.append(RefusedFrame(source: source, reason: "\(place): \(error)"))
        guard mayHide(entry, unknownHere) else { continue }
        // Its masks were on screen, too.
        if let timeMs = entry.object?["timeMs"]?.integer, limits.instants.contains(timeMs) {
          draft.blindMs.append(timeMs)
        } else {
          draft.pointers.omitAll("\(place) is refused, and has masks")
        }
      }
    }
    for name in contents.topNames where !known.contains(name) {
      if listed == nil, let frame = times.frames[name] {
        draft.frames.append(frame)
      } else {
        let reason =
          listed == nil ? times.refused[name] ?? "the name carries no instant" : "not listed in \(description)"
        draft.refused.append(RefusedFrame(source: name, reason: reason))
      }
    }
    draft.warnings = UnknownKey.warnings(of: unknown)
    return draft
  }

  /// Returns the files of an entry, or of its layers; nil if a file is missing.
  private static func files(of entry: JSONValue) -> [String]? {
    guard let layers = entry.object?["layers"], layers != .null else {
      return entry.object?["file"]?.string.map { [plain($0)] }
    }
    let files = (layers.array ?? []).compactMap { $0.object?["file"]?.string }.map(plain)
    return files.count == layers.array?.count ? files : nil
  }

  /// Whether an entry has masks, or keys that may be meant as such.
  private static func mayHide(_ entry: JSONValue, _ unknown: [UnknownKey]) -> Bool {
    let layers = entry.object?["layers"]?.array ?? []
    return unknown.contains(where: \.mayHide) || ([entry] + layers).contains { $0.object?["masks"] != nil }
  }

  /// Removes `./` from the start of a name; some recorders write it.
  package static func plain(_ file: String) -> String { file.hasPrefix("./") ? plain(String(file.dropFirst(2))) : file }

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

  private static func metadata(of json: JSONValue, limits: Limits) throws(JSONError) -> JSONValue {
    guard let metadata = json.object?["metadata"], metadata != .null else { return .object([:]) }
    guard metadata.isStrict else { throw JSONError("metadata: NaN and Infinity are no JSON") }
    let size = metadata.bytes().count
    guard size <= limits.metadataBytes else {
      throw JSONError("metadata: \(size) bytes, more than the limit of \(limits.metadataBytes)")
    }
    return metadata
  }

  private static func bytes(of path: String, in contents: any BatchContents, limits: Limits) throws -> [UInt8] {
    switch try contents.contents(of: path, limit: limits.jsonBytes) {
    case .bytes(let bytes)?: return bytes
    case .refused(let reason)?: throw BadBatch("read", path, reason, advice: "send a plain file of reasonable size")
    case nil: throw BadBatch("read", path, "missing", advice: "send the batch again")
    }
  }
}
