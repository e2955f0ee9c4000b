// The pages that are opened in a segment, in its manifest: "pages":[[0,"https://example.org/cart"]].

import FrameBatches
import JSON

package enum SegmentPages {
  /// The member of a manifest.
  package static let key = "pages"

  /// Returns the pages of each segment. A page that is opened before a segment, or in the gap before it, is shown from its start.
  ///
  /// - Parameters:
  ///   - pages: in the order of their times.
  ///   - segments: in unix milliseconds, in order.
  package static func placed(_ pages: [PageView], on segments: [Range<Int64>]) -> [[PageView]] {
    var rest = pages[...]
    return segments.map { segment in
      let own = rest.prefix { $0.timeMs < segment.upperBound }
      rest = rest.dropFirst(own.count)
      // Of those before the segment, the last one is shown.
      let before = own.prefix { $0.timeMs < segment.lowerBound }
      return Array(own.dropFirst(max(0, before.count - 1)))
    }
  }

  /// - Parameter startMs: of the segment, in unix milliseconds.
  package static func json(_ pages: [PageView], from startMs: Int64) -> JSONValue {
    .array(pages.map { .array([.number(max(0, $0.timeMs - startMs)), .string($0.name)]) })
  }

  /// Reads the member of a manifest.
  package static func read(
    _ json: JSONValue, of segment: PublishedSegment
  ) throws(JSONError) -> [(unixMs: Int64, name: String)] {
    var pages: [(unixMs: Int64, name: String)] = []
    var beforeMs: Int64 = 0
    for (index, entry) in (json.array ?? []).enumerated() {
      guard let parts = entry.array, parts.count == 2, let offsetMs = parts[0].integer,
        (beforeMs..<max(beforeMs + 1, segment.durationMs)).contains(offsetMs), offsetMs < segment.durationMs,
        let name = parts[1].string
      else { throw JSONError("page \(index) is not [milliseconds, name], in order") }
      pages.append((segment.startMs + offsetMs, name))
      beforeMs = offsetMs
    }
    guard !pages.isEmpty else { throw JSONError("no pages") }
    return pages
  }
}
