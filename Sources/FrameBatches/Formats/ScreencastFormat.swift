// The Chrome DevTools protocol: a screencast, as JSON lines of `Page.screencastFrame` events, or of their `params` alone:
// {"data":<base64>,"metadata":{"timestamp":<unix seconds>}}.

import JSON

package enum ScreencastFormat: BatchFormat {
  package static let name = "Chrome DevTools screencast"

  package static func read(_ source: BatchSource, limits: Limits) throws -> [BatchDraft]? {
    guard let text = source.contents.text else { return nil }
    var draft = BatchDraft()
    draft.defaultCapture = .onChange
    draft.isListed = true
    var records = 0
    var broken: [RefusedFrame] = []
    var isScreencast = false
    try RecordScanner.scan(text, limits: limits) { piece in
      records += 1
      guard records <= limits.entries else {
        throw BadBatch("read", source.name, "more than \(limits.entries) records", advice: Limits.advice("entries"))
      }
      let frame = "\(source.name)#\(draft.frames.count + broken.count)"
      switch piece {
      case .event: break
      case .broken(let offset, let reason):
        broken.append(RefusedFrame(source: frame, reason: "\(reason) at byte \(offset)", kind: .record))
      case .record(let skeleton):
        do {
          let record = try skeleton.parsed()
          // Other events of the protocol may lie between the frames.
          guard let parameters = parameters(of: record) else { break }
          isScreencast = true
          draft.frames.append(try Self.frame(parameters, named: frame))
        } catch let error as JSONError {
          broken.append(RefusedFrame(source: frame, reason: error.description, kind: .record))
        }
      }
      return isScreencast || records < unknownRecords
    }
    guard isScreencast else { return nil }
    draft.refused = broken
    return [draft]
  }

  /// A text that starts with this many other records is no screencast.
  private static let unknownRecords = 1_000

  /// Returns the parameters of a screencast's event; nil for another record.
  static func parameters(of record: JSONValue) -> JSONValue? {
    if record.object?["method"] != nil {
      return record.text("method") == "Page.screencastFrame" ? record.object?["params"] : nil
    }
    guard let members = record.object, members["metadata"]?.object != nil, members["data"]?.string != nil else {
      return nil
    }
    return record
  }

  private static func frame(_ parameters: JSONValue, named name: String) throws(JSONError) -> Frame {
    guard let image = LocatedText(parameters.object?["data"]) else { throw JSONError("no \"data\"") }
    guard let said = parameters.object?["metadata"]?.object?["timestamp"] else { throw JSONError("no timestamp") }
    guard case .number(let text) = said, let timeMs = UnixTime.milliseconds(ofSeconds: text) else {
      throw JSONError("the timestamp is not a number of seconds since 1970")
    }
    return Frame(source: name, path: StreamContents.name(ofText: image.range), timeMs: timeMs)
  }
}
