// The pages that are opened in a segment, in its manifest: "pages":[[0,"https://example.org/cart"]].

import FrameBatches
import JSON

package enum SegmentPages {
  /// The member of a manifest.
  package static let key = "pages"

  /// Returns the pages of each segment. A page that is opened before a segment, or in the gap before it, is shown from its start. One that
  /// is opened after all segments is that of the last.
  ///
  /// - Parameters:
  ///   - pages: in the order of their times.
  ///   - segments: in unix milliseconds, in order.
  package static func placed(_ pages: [PageView], on segments: [Range<Int64>]) -> [[PageView]] {
    var rest = pages[...]
    var placed = segments.map { segment in
      let own = rest.prefix { $0.timeMs < segment.upperBound }
      rest = rest.dropFirst(own.count)
      // Of those before the segment, the last one is shown.
      let before = own.prefix { $0.timeMs < segment.lowerBound }
      return Array(own.dropFirst(max(0, before.count - 1)))
    }
    // Opened after the last picture: the next batch does not know of it.
    if let last = rest.last, !placed.isEmpty { placed[placed.count - 1].append(last) }
    return placed
  }

  /// - Parameter segment: its times, in unix milliseconds. Pages before and after it are moved to its first and last millisecond.
  package static func json(_ pages: [PageView], in segment: Range<Int64>) -> JSONValue {
    .array(
      pages.map { page in
        let offset = page.timeMs - segment.lowerBound
        return .array([.number(max(0, min(offset, Int64(segment.count) - 1))), .string(page.name)])
      })
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
