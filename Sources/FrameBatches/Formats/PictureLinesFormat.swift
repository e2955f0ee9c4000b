// Home-made recorders: JSON lines, or an array, of records with a time and a picture each, as
// {"timestamp":<unix ms>,"screenshot":"data:image/jpeg;base64,…"}.

import JSON

package enum PictureLinesFormat: BatchFormat {
  package static let name = "JSON lines with pictures"

  /// A text that starts with this many records without a picture has none.
  private static let unknownRecords = 1_000

  /// The names of times, in lowercase.
  private static let timeKeys = ["timestamp", "time", "timems", "time_ms", "timestampms", "timestamp_ms", "ts", "t"]

  /// The remedy for JSON that no format reads.
  static let advice =
    #"write a line {"timestamp":<unix ms>,"image":"data:image/jpeg;base64,…"} for each picture, or put the pictures into a directory with a batch.json, or POST them to /v1/sessions/ID/frames; docs/input-formats.md has the JSON of recorders"#

  package static func read(_ source: BatchSource, limits: Limits) throws -> [BatchDraft]? {
    guard let text = source.contents.text else { return nil }
    var draft = BatchDraft()
    draft.isListed = true
    var records = 0
    try RecordScanner.scan(text, limits: limits) { piece in
      let frame = "\(source.name)#\(records)"
      records += 1
      guard records <= limits.entries else {
        throw BadBatch("read", source.name, "more than \(limits.entries) records", advice: Limits.advice("entries"))
      }
      do {
        switch piece {
        case .event(let record, _), .record(let record):
          if let found = try Self.frame(of: record.parsed(), named: frame, in: text, source.options) {
            draft.frames.append(found)
          }
        case .broken(let offset, let reason): throw JSONError("\(reason) at byte \(offset)")
        }
      } catch let error as JSONError {
        draft.refused.append(RefusedFrame(source: frame, reason: error.description))
      }
      return !draft.frames.isEmpty || records < unknownRecords
    }
    if draft.frames.count > draft.refused.count { return [draft] }
    guard let first = draft.refused.first(where: { $0.reason.contains("picture") }) else { return nil }
    throw BadBatch("read", source.name, "JSON with pictures; \(first.source): \(first.reason)", advice: advice)
  }

  /// - Returns: nil for a record without a picture.
  /// - Throws: ``JSONError`` for a record with several pictures, or without one time.
  private static func frame(
    of record: JSONValue, named name: String, in text: StreamContents, _ options: InputOptions
  ) throws -> Frame? {
    let pictures = try pictures(in: record, of: text)
    guard let picture = pictures.first else { return nil }
    guard pictures.count == 1 else { throw JSONError("\(pictures.count) pictures in one record") }
    let said = (record.object ?? [:]).filter { timeKeys.contains($0.key.lowercased()) }
    let instants = Set(said.values.compactMap { instant(of: $0, options) })
    guard let timeMs = instants.first else {
      throw JSONError(
        said.isEmpty ? "a picture without a \"timestamp\"" : "a picture whose time is no instant since 2001 with a zone"
      )
    }
    guard instants.count == 1 else { throw JSONError("a picture of several times") }
    return Frame(source: name, path: StreamContents.name(ofText: picture), timeMs: timeMs)
  }

  /// Returns the places of the pictures in a record.
  private static func pictures(in value: JSONValue, of text: StreamContents) throws -> [Range<Int>] {
    switch value {
    case .object(let members): return try members.values.flatMap { try pictures(in: $0, of: text) }
    case .array(let elements): return try elements.flatMap { try pictures(in: $0, of: text) }
    case .string:
      guard let located = LocatedText(value), located.mayBeImage else { return [] }
      // The slashes of a text may be escaped.
      let start = try text.bytes(located.range.dropFirst().prefix(32)).filter { $0 != UInt8(ascii: "\\") }
      // A data URL, or the first bytes of a JPEG or PNG in base64.
      return ["data:image/", "/9j/", "iVBORw0KGgo"].contains { start.starts(with: $0.utf8) } ? [located.range] : []
    default: return []
    }
  }

  /// Returns an instant in unix seconds, milliseconds, microseconds or nanoseconds, which their size tells, or in ISO 8601.
  private static func instant(of value: JSONValue, _ options: InputOptions) -> Int64? {
    let written: String?
    if case .number(let number) = value { written = number } else { written = LocatedText(value)?.text }
    guard let written else { return nil }
    if written.utf8.allSatisfy({ (48...57).contains($0) || $0 == UInt8(ascii: ".") }) {
      let limits = Limits().instants
      return ["", "e-3", "e-6", "e-9"].lazy.compactMap { UnixTime.milliseconds(ofSeconds: written + $0) }
        .first(where: limits.contains)
    }
    if let instant = ISOTime.instant(in: written) { return instant }
    for pattern in ISOTime.patterns where pattern.needsZone {
      guard let zone = options.timeZone, let match = pattern.match(written) else { continue }
      let instants = NamedTime(match, zone: zone)?.instants ?? []
      return instants.count == 1 ? instants[0] : nil
    }
    return nil
  }
}
