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
    do {
      let json = try JSONParser.parse(try bytes(of: path, in: contents, limits: limits))
      return [try NativeDraft.read(json, at: path, source, limits)]
    } catch let error as JSONError {
      throw BadBatch("read", path, error.description, advice: "write batch.json as docs/input-formats.md says")
    }
  }

  /// Returns the text of a `batch.json` that states all facts of a batch of single images.
  ///
  /// - Parameter statesCapture: whether it states the capture mode; else the reader's options do.
  package static func description(of batch: Batch, statesCapture: Bool = true) -> [UInt8] {
    // Of two files at one instant, the later one in the list is shown.
    let frames = batch.frames.enumerated().sorted { ($0.element.timeMs, -$0.offset) < ($1.element.timeMs, -$1.offset) }
    var members: [String: JSONValue] = [
      "version": .number(1), "session": .string(batch.session.description), "intervalMs": .number(batch.intervalMs),
      "endMs": .number(batch.endMs), "final": .bool(batch.isFinal),
      "frames": .array(
        frames.map { .object(["file": .string($0.element.paths[0]), "timeMs": .number($0.element.timeMs)]) }),
    ]
    if statesCapture { members["capture"] = .string(batch.capture.rawValue) }
    if batch.clockOffsetMs != 0 { members["clockOffsetMs"] = .number(batch.clockOffsetMs) }
    if batch.isEndOpen { members["endIsOpen"] = .bool(true) }
    if batch.folder != nil { members["grows"] = .bool(true) }
    if batch.metadata != .object([:]) { members["metadata"] = batch.metadata }
    if let timeZone = batch.timeZone { members["timeZone"] = .string(timeZone) }
    if !batch.labels.isEmpty { members["labels"] = batch.labels.json }
    if let trace = batch.traceParent { members[TraceParent.key] = .string(trace.description) }
    return JSONValue.object(members).bytes(pretty: true) + [UInt8(ascii: "\n")]
  }

  /// Returns the text of a `batch.json` of a batch without pictures.
  package static func description(of labels: [Label], for session: SessionID) -> [UInt8] {
    JSONValue.object(["version": .number(1), "session": .string(session.description), "labels": labels.json])
      .bytes(pretty: true) + [UInt8(ascii: "\n")]
  }

  /// Returns the text of a `batch.json` for a growing folder of pictures whose names tell their times.
  package static func description(ofGrowing session: SessionID) -> [UInt8] {
    JSONValue.object(["version": .number(1), "session": .string(session.description), "grows": .bool(true)])
      .bytes(pretty: true) + [UInt8(ascii: "\n")]
  }

  /// Removes `./` from the start of a name; some recorders write it.
  package static func plain(_ file: String) -> String { file.hasPrefix("./") ? plain(String(file.dropFirst(2))) : file }

  private static func bytes(of path: String, in contents: any BatchContents, limits: Limits) throws -> [UInt8] {
    switch try contents.contents(of: path, limit: limits.jsonBytes) {
    case .bytes(let bytes)?: return bytes
    case .refused(let refusal)?:
      throw BadBatch("read", path, "\(refusal)", advice: "send a plain file of reasonable size")
    case nil: throw BadBatch("read", path, "missing", advice: "send the batch again")
    }
  }
}
