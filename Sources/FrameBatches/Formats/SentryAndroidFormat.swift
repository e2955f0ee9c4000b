// Sentry for Android: a directory `replay_<32 hex>/` of `<unix ms>.jpg` and `.ongoing_segment`: `key=value` lines. The value of
// `replay.recording` is `{}` and an array of rrweb events. Their coordinates are pixels of the pictures.

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
    let (values, pointers) = try facts(of: source.contents, limits)
    var draft = PlainFormat.draft(of: names.filter { lastComponent(of: $0) != sideFile })
    draft.session = isNamed ? id : values["replay.id"].flatMap { SessionID($0)?.description }
    if let rate = values["config.frame-rate"].flatMap({ Int64($0) }), (1...60).contains(rate) {
      draft.intervalMs = 1_000 / rate
    }
    if !values.isEmpty { draft.metadata = .object(["sentry": .object(values.mapValues { .string($0) })]) }
    draft.pointers = pointers
    return [draft]
  }

  /// Returns the values of the side file, and the pointer events. A recording that has some is no value any more: manifests must not
  /// have their coordinates in two places.
  private static func facts(
    of contents: any BatchContents, _ limits: Limits
  ) throws -> (values: [String: String], pointers: PointerEventList) {
    guard case .bytes(let bytes)? = try contents.contents(of: sideFile, limit: limits.jsonBytes),
      let text = String(validating: bytes, as: UTF8.self)
    else { return ([:], PointerEventList()) }
    var values = values(in: text)
    let pointers = values[recording].map { Self.pointers(in: $0, limits) } ?? PointerEventList()
    let removed = pointers.isEmpty ? nil : values.removeValue(forKey: recording)
    let isSmall = bytes.count - (removed?.utf8.count ?? 0) <= factsBytes
    return (isSmall ? values : [:], pointers)
  }

  private static func pointers(in recording: String, _ limits: Limits) -> PointerEventList {
    var list = PointerEventList()
    // Before the array is an object without members, or with the number of Sentry's segment.
    let array = recording.utf8.drop { $0 != UInt8(ascii: "[") }
    guard !array.isEmpty else { return list }
    do {
      for event in try JSONParser.parse(Array(array)).array ?? [] {
        guard event.object?["type"]?.integer == 3, let data = event.object?["data"],
          RRWebPointers.isSource(data.object?["source"]?.integer)
        else { continue }
        guard let timeMs = event.object?["timestamp"]?.integer else {
          list.omit("no timestamp")
          continue
        }
        RRWebPointers.read(data, timeMs: timeMs, into: &list, limit: limits.touches)
      }
    } catch {
      list.omit("\(Self.recording) is \(error)")
    }
    return list
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
