import Encoding
import FileSystem
import FrameBatches
import ISOMedia

/// The segments of a session that were removed, or would be.
package struct RemovedSegments: Sendable, Equatable {
  package let session: SessionID
  package private(set) var segments = 0
  /// The size of their videos.
  package private(set) var bytes = 0
  /// The end of the last removed segment, in unix milliseconds.
  package private(set) var untilMs = Int64.min
  /// Whether the session went as a whole.
  package internal(set) var isWhole = false
  /// Whether all of the session would go, and it waits for the announcement of its end.
  package internal(set) var isEnding = false

  init(_ session: SessionID) { self.session = session }

  /// A description for a person.
  package var what: String {
    let segments = count(segments, "segment")
    return isWhole ? "a session of \(segments)" : "\(segments) that ended by \(untilMs.dateText)"
  }

  mutating func add(_ removed: [PublishedSegment]) { add(removed.map(\.entry)) }

  mutating func add(_ removed: [SessionEntry]) {
    segments += removed.count
    bytes += removed.reduce(0) { $0 + $1.bytes }
    untilMs = max(untilMs, removed.last?.endMs ?? .min)
  }

  /// Adds all segments of a session.
  mutating func add(_ index: SessionIndex) {
    segments += index.count
    bytes += index.bytes
    untilMs = max(untilMs, index.last.endMs)
  }

  mutating func add(_ other: RemovedSegments) {
    segments += other.segments
    bytes += other.bytes
    untilMs = max(untilMs, other.untilMs)
    isWhole = isWhole || other.isWhole
  }
}
