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

/// Parses instants in the forms that recorders write.
enum UnixTime {
  /// The number of milliseconds nearest to a JSON number of seconds; halves are rounded up. The number is not converted to binary.
  ///
  /// - Returns: nil for a negative number, and for one beyond the year 5138.
  static func milliseconds(ofSeconds number: String) -> Int64? {
    let parts = number.lowercased().split(separator: "e", omittingEmptySubsequences: false)
    let mantissa = parts[0].split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count <= 2, let exponent = parts.count == 2 ? Int(parts[1]) : 0, abs(exponent) <= 1_000 else {
      return nil
    }
    let fraction = mantissa.count == 2 ? mantissa[1] : ""
    // The digits from the first one that is not 0, and how many of them stand before the point of milliseconds.
    let digits = (mantissa[0] + fraction).drop { $0 == "0" }
    guard digits.allSatisfy({ $0.isASCII && $0.isNumber }) else { return nil }
    let whole = digits.count - fraction.count + exponent + 3
    guard whole <= 14 else { return nil }
    guard whole >= 0 else { return 0 }
    let padded = digits + String(repeating: "0", count: max(0, whole + 1 - digits.count))
    let isRoundedUp = padded.dropFirst(whole).first.map { $0 >= "5" } ?? false
    return (Int64(padded.prefix(whole)) ?? 0) + (isRoundedUp ? 1 : 0)
  }
}
