// Sentry for Android: a directory `replay_<32 hex>/` of `<unix ms>.jpg` and `.ongoing_segment`: `key=value` lines.

import FileSystem
import JSON

package enum SentryAndroidFormat: BatchFormat {
  package static let name = "Sentry Android"

  private static let sideFile = ".ongoing_segment"

  package static func read(_ source: BatchSource, limits: Limits) throws -> [BatchDraft]? {
    let id = source.name.hasPrefix("replay_") ? String(source.name.dropFirst(7)) : ""
    let isNamed = id.utf8.count == 32 && id.allSatisfy(\.isHexDigit)
    let names = source.contents.topNames
    guard isNamed || names.contains(sideFile), names.contains(where: { PlainFormat.instant(ofName: $0) != nil }) else {
      return nil
    }
    let values = try values(of: source.contents)
    var draft = PlainFormat.draft(of: names.filter { lastComponent(of: $0) != sideFile })
    draft.session = isNamed ? id : values["replay.id"].flatMap { SessionID($0)?.description }
    if let rate = values["config.frame-rate"].flatMap({ Int64($0) }), (1...60).contains(rate) {
      draft.intervalMs = 1_000 / rate
    }
    if !values.isEmpty { draft.metadata = .object(["sentry": .object(values.mapValues { .string($0) })]) }
    return [draft]
  }

  /// Parses lines of the form key=value; other lines are ignored.
  private static func values(of contents: any BatchContents) throws -> [String: String] {
    guard case .bytes(let bytes)? = try contents.contents(of: sideFile, limit: 16 << 10),
      let text = String(validating: bytes, as: UTF8.self)
    else { return [:] }
    let lines = text.split(whereSeparator: \.isNewline).compactMap { line -> (String, String)? in
      let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      return parts.count == 2 ? (parts[0], parts[1]) : nil
    }
    return Dictionary(lines, uniquingKeysWith: { $1 })
  }
}
