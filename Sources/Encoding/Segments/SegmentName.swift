/// The names of a segment's files, made from its start.
package enum SegmentName {
  package static func video(_ startMs: Int64) -> String { stem(startMs) + ".mp4" }
  package static func fragment(_ startMs: Int64, digest: String) -> String { "\(stem(startMs))-\(digest).m4s" }
  package static func sprite(_ startMs: Int64, digest: String) -> String { "\(stem(startMs))-\(digest).jpg" }
  package static func manifest(_ startMs: Int64) -> String { stem(startMs) + ".json" }
  /// Returns the name of an event for Sentry.
  package static func event(_ startMs: Int64) -> String { stem(startMs) + ".sentry.json" }

  // Each returns the start in a file's name, in unix milliseconds; nil for any other file.
  package static func start(ofManifest name: String) -> Int64? { start(of: name, ".json") }
  package static func start(ofVideo name: String) -> Int64? { start(of: name, ".mp4") }
  package static func start(ofEvent name: String) -> Int64? { start(of: name, ".sentry.json") }

  private static func start(of name: String, _ suffix: String) -> Int64? {
    guard name.hasPrefix("segment-"), name.hasSuffix(suffix) else { return nil }
    let digits = name.dropFirst(8).dropLast(suffix.count)
    guard digits.utf8.count == 13, digits.utf8.allSatisfy({ $0 >= 48 && $0 <= 57 }) else { return nil }
    return Int64(digits)
  }

  private static func stem(_ startMs: Int64) -> String {
    let digits = String(startMs)
    return "segment-" + String(repeating: "0", count: max(0, 13 - digits.count)) + digits
  }
}
