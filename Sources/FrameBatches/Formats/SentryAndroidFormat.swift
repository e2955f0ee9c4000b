// Sentry for Android: a directory `replay_<32 hex>/` of `<unix ms>.jpg` and `.ongoing_segment`: `key=value` lines. The value of
// `replay.recording` is `{}` and an array of rrweb events: pointers, whose coordinates are pixels of the pictures, and breadcrumbs.

import FileSystem
import JSON

package enum SentryAndroidFormat: BatchFormat {
  package static let name = "Sentry Android"

  private static let sideFile = ".ongoing_segment"
  /// Maximum bytes of the side file without the pointer events.
  private static let factsBytes = 16 << 10
  private static let recording = "replay.recording"

  package static func read(_ source: BatchSource, limits: Limits) throws -> [BatchDraft]? {
    let id = source.name.hasPrefix("replay_") ? String(source.name.dropFirst(7)) : ""
    let isNamed = id.utf8.count == 32 && id.allSatisfy(\.isHexDigit)
    let names = source.contents.topNames
    guard isNamed || names.contains(sideFile), names.contains(where: { PlainFormat.instant(ofName: $0) != nil }) else {
      return nil
    }
    let (values, events) = try facts(of: source.contents, limits)
    var draft = PlainFormat.draft(of: names.filter { lastComponent(of: $0) != sideFile })
    draft.session = isNamed ? id : values["replay.id"].flatMap { SessionID($0)?.description }
    if let rate = values["config.frame-rate"].flatMap({ Int64($0) }), (1...60).contains(rate) {
      draft.intervalMs = 1_000 / rate
    }
    if !values.isEmpty { draft.metadata = .object(["sentry": .object(values.mapValues { .string($0) })]) }
    (draft.pointers, draft.labels) = (events.pointers, events.labels)
    return [draft]
  }

  /// The events of a recording that are read.
  private struct Events {
    var pointers = PointerEventList()
    var labels = LabelList()
  }

  /// Returns the values of the side file, and the events. A recording that has some is no value any more: manifests must not have
  /// coordinates in two places, nor what is left out of labels.
  private static func facts(
    of contents: any BatchContents, _ limits: Limits
  ) throws -> (values: [String: String], events: Events) {
    guard case .bytes(let bytes)? = try contents.contents(of: sideFile, limit: limits.jsonBytes),
      let text = String(validating: bytes, as: UTF8.self)
    else { return ([:], Events()) }
    var values = values(in: text)
    let events = try values[recording].map { try Self.events(in: $0, limits) } ?? Events()
    let isRead = !events.pointers.isEmpty || !events.labels.isEmpty
    let removed = isRead ? values.removeValue(forKey: recording) : nil
    let isSmall = bytes.count - (removed?.utf8.count ?? 0) <= factsBytes
    return (isSmall ? values : [:], events)
  }

  private static func events(in recording: String, _ limits: Limits) throws -> Events {
    var events = Events()
    // Before the array is an object without members, or with the number of Sentry's segment.
    let array = recording.utf8.drop { $0 != UInt8(ascii: "[") }
    try RecordScanner.scan(StreamContents(.memory(Array(array))), limits: limits) { piece in
      do throws(JSONError) {
        switch piece {
        case .record(let skeleton), .event(let skeleton, _): try read(skeleton.parsed(), into: &events, limits)
        case .broken(let offset, let reason): throw JSONError("\(reason) at byte \(offset)")
        }
      } catch {
        events.pointers.omit("\(Self.recording): \(error)")
      }
      return true
    }
    return events
  }

  private static func read(_ event: JSONValue, into events: inout Events, _ limits: Limits) throws(JSONError) {
    guard let type = event.object?["type"]?.integer, let data = event.object?["data"] else { return }
    let isPointer = type == 3 && RRWebPointers.isSource(data.object?["source"]?.integer)
    guard isPointer || type == 5 else { return }
    let timeMs = try event.required("timestamp", .integer)
    if isPointer {
      RRWebPointers.read(data, timeMs: timeMs, into: &events.pointers, limit: limits.touches)
    } else if let label = RRWebLabels.label(type: type, data, atMs: timeMs) {
      events.labels.append(label)
    }
  }

  /// Parses lines of the form key=value; other lines are ignored.
  private static func values(in text: String) -> [String: String] {
    let lines = text.split(whereSeparator: \.isNewline).compactMap { line -> (String, String)? in
      let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      return parts.count == 2 ? (parts[0], parts[1]) : nil
    }
    return Dictionary(lines, uniquingKeysWith: { $1 })
  }
}
