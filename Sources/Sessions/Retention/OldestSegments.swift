// Finds the oldest segments of all sessions, in a directory or a store. They are taken from the oldest on, session by session in the
// order of their starts, until enough bytes are found. It reads the list of those segments only.

import Encoding
import FrameBatches

/// The place of sessions whose oldest segments are found.
protocol SessionsWithSizes {
  associatedtype Segments: OrderedSegments

  /// Returns the bytes of a session; nil if it is gone or cannot be read. Then it counts in the next pass.
  func bytes(of session: SessionID) -> SessionBytes?
  /// Returns the segments of a session; nil if it is gone.
  func segments(of session: SessionID) -> Segments?
}

/// The segments of a session, in order.
protocol OrderedSegments {
  var session: SessionID { get }
  /// Returns the start of the next segment; nil behind the last one.
  mutating func next() throws -> Int64?
  /// Returns the bytes of the video of a segment before the next one.
  func bytesOfVideo(_ startMs: Int64) -> Int
  /// Whether a rule removes the session as a whole. Asked behind the last segment.
  func isOver(_ rule: RemovalRule) throws -> Bool
}

struct OldestSegments<Sessions: SessionsWithSizes> {
  let sessions: Sessions
  /// In unix milliseconds.
  let nowMs: Int64
  let shouldContinue: @Sendable () -> Bool

  /// Returns which segments of which sessions to remove, so that all sessions take about a number of bytes, or less.
  func rules(for ids: [SessionID], maximumBytes: Int) throws -> [(session: SessionID, rule: RemovalRule)] {
    var excess = -maximumBytes
    var sizes: [SessionID: SessionBytes] = [:]
    for id in ids {
      guard shouldContinue() else { return [] }
      guard let size = sessions.bytes(of: id) else { continue }
      excess = min(excess + size.lasting, SessionBytes.maximum)
      sizes[id] = size
    }
    guard excess > 0 else { return [] }
    var queue = SegmentQueue<Sessions.Segments>()
    for id in ids where sizes[id] != nil {
      guard shouldContinue() else { return [] }
      // One whose views are not written yet goes on in the next pass.
      if var list = sessions.segments(of: id), let start = try list.next() { queue.add(start, list) }
    }
    let idleSinceMs = nowMs - RetentionLimits.idleMs
    var ends: [SessionID: Int64] = [:]
    while excess > 0, shouldContinue(), let (start, rest) = queue.removeFirst() {
      var list = rest
      let next = try list.next()
      let rule = RemovalRule.starting(beforeMs: start + 1, idleSinceMs: idleSinceMs)
      // The last segment of a session stays, unless all of it may go.
      if try next == nil && !list.isOver(rule) { continue }
      if let size = sizes[list.session] {
        // Its other files go with the session.
        excess -= size.ofSegment(video: list.bytesOfVideo(start)) + (next == nil ? size.shared : 0)
      }
      ends[list.session] = start + 1
      if let next { queue.add(next, list) }
    }
    return ends.sorted { $0.key.description < $1.key.description }
      .map { ($0.key, .starting(beforeMs: $0.value, idleSinceMs: idleSinceMs)) }
  }
}

/// A priority queue of lists, by their next segments.
private struct SegmentQueue<List> {
  /// A binary heap.
  private var items: [(startMs: Int64, list: List)] = []

  mutating func add(_ startMs: Int64, _ list: List) {
    items.append((startMs, list))
    var child = items.count - 1
    while child > 0, case let parent = (child - 1) / 2, items[child].startMs < items[parent].startMs {
      items.swapAt(child, parent)
      child = parent
    }
  }

  mutating func removeFirst() -> (startMs: Int64, list: List)? {
    guard let first = items.first, let last = items.popLast() else { return nil }
    guard !items.isEmpty else { return first }
    items[0] = last
    var parent = 0
    while true {
      let children = [2 * parent + 1, 2 * parent + 2].filter { $0 < items.count }
      guard let least = children.min(by: { items[$0].startMs < items[$1].startMs }),
        items[least].startMs < items[parent].startMs
      else { return first }
      items.swapAt(least, parent)
      parent = least
    }
  }
}
