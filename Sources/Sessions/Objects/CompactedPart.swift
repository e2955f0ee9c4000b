// The part of a stored session that compaction has seen, as a member of the session's head.

import Encoding
import JSON

struct CompactedPart: Sendable, Equatable {
  /// Segments that start before this instant need no look, in unix milliseconds.
  private(set) var throughMs: Int64
  /// The last pack that compaction has written; nil if it had nothing to write.
  let file: String?
  /// When the latest segment in such packs was published, in unix milliseconds; 0 if nobody knows.
  let publishedMs: Int64
  /// Whether the views may still name replaced objects.
  var lacksViews: Bool

  init(throughMs: Int64, file: String?, publishedMs: Int64, lacksViews: Bool) {
    (self.throughMs, self.file, self.publishedMs, self.lacksViews) = (throughMs, file, publishedMs, lacksViews)
  }

  /// Notes a segment that was published late.
  mutating func take(from startMs: Int64) { throughMs = min(throughMs, startMs) }

  /// Returns the last pack that compaction has written, unless retention has removed it.
  ///
  /// - Parameter startMs: the start of the session.
  func pack(from startMs: Int64) -> String? {
    file.flatMap { file in
      SegmentName.pack(named: file).flatMap { $0.startMs >= startMs ? file : nil }
    }
  }

  var json: JSONValue {
    var members: [String: JSONValue] = ["throughMs": .number(throughMs), "publishedMs": .number(publishedMs)]
    members["file"] = file.map { .string($0) }
    if lacksViews { members["lacksViews"] = .bool(true) }
    return .object(members)
  }

  init(_ json: JSONValue) throws(JSONError) {
    throughMs = try json.count("throughMs")
    publishedMs = try json.count("publishedMs")
    file = try json.optional("file", .string)
    lacksViews = try json.optional("lacksViews", .bool) ?? false
    guard file.map({ SegmentName.pack(named: $0) != nil }) ?? true else { throw JSONError("compaction: not a pack") }
  }
}

extension ObjectSession.Published {
  /// Whether compaction has seen all segments, and finished its work.
  var isCompact: Bool {
    compaction.map { $0.throughMs > index.last.startMs && !$0.lacksViews } ?? false
  }
}
