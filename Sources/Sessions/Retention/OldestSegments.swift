// Finds the oldest segments of all sessions. They are taken from the oldest on, session by session in the order of their starts, until
// enough bytes are found. It reads the list of those segments only.

import Encoding
import FileSystem
import FrameBatches

struct OldestSegments {
  let output: String
  let bytes: OutputBytes
  /// In unix milliseconds.
  let nowMs: Int64
  let shouldContinue: @Sendable () -> Bool

  /// Returns which segments of which sessions to remove, so that all sessions take about a number of bytes, or less.
  func rules(for sessions: [SessionID], maximumBytes: Int) throws -> [(session: SessionID, rule: RemovalRule)] {
    var excess = -maximumBytes
    var sizes: [SessionID: SessionBytes] = [:]
    for session in sessions {
      guard shouldContinue() else { return [] }
      // A session that cannot be read counts in the next pass.
      guard let size = try? bytes.bytes(of: session) else { continue }
      excess += size.lasting
      sizes[session] = size
    }
    guard excess > 0 else { return [] }
    var queue = SegmentQueue()
    for session in sessions where sizes[session] != nil {
      guard shouldContinue() else { return [] }
      // One whose views are not written yet goes on in the next pass.
      var list = SegmentList(SessionDirectory(output: output, session: session))
      if let start = list.next() { queue.add(start, list) }
    }
    let idleSinceMs = nowMs - RetentionLimits.idleMs
    var ends: [SessionID: Int64] = [:]
    while excess > 0, shouldContinue(), let (start, rest) = queue.removeFirst() {
      var list = rest
      let next = list.next()
      let rule = RemovalRule.starting(beforeMs: start + 1, idleSinceMs: idleSinceMs)
      // The last segment of a session stays, unless all of it may go.
      if next == nil, (try? list.directory.isOver(rule, list.directory.publishedStarts())) != true { continue }
      let video = OutputBytes.size(of: list.directory.path + "/" + SegmentName.video(start))
      excess -= sizes[list.directory.session]?.ofSegment(video: video) ?? 0
      ends[list.directory.session] = start + 1
      if let next { queue.add(next, list) }
    }
    return ends.sorted { $0.key.description < $1.key.description }
      .map { ($0.key, .starting(beforeMs: $0.value, idleSinceMs: idleSinceMs)) }
  }
}

/// The starts of the segments that `session.ffconcat` lists, read a part at a time.
private struct SegmentList {
  private static let partBytes = 8 << 10

  let directory: SessionDirectory
  private var offset = 0
  /// The next starts, the first of them last.
  private var starts: [Int64] = []

  init(_ directory: SessionDirectory) { self.directory = directory }

  /// Returns the start of the next segment; nil behind the last one.
  mutating func next() -> Int64? {
    while starts.isEmpty, read() {}
    return starts.popLast()
  }

  /// - Returns: whether there may be more.
  private mutating func read() -> Bool {
    guard let opened = try? Directory(opening: directory.path, followingLinks: false),
      let file = try? OpenFile(IndexText.scriptFile, in: opened), offset < file.size,
      case let bytes = FileBytes(file).bytes(at: offset, min(Self.partBytes, file.size - offset)),
      let end = bytes.lastIndex(of: UInt8(ascii: "\n"))
    else { return false }
    offset += end + 1
    let found = bytes[...end].split(separator: UInt8(ascii: "\n")).compactMap { line in
      line.starts(with: "file ".utf8)
        ? SegmentName.start(ofVideo: String(decoding: line.dropFirst(5), as: UTF8.self)) : nil
    }
    starts = found.reversed()
    return true
  }
}

/// A priority queue of lists, by their next segments.
private struct SegmentQueue {
  /// A binary heap.
  private var items: [(startMs: Int64, list: SegmentList)] = []

  mutating func add(_ startMs: Int64, _ list: SegmentList) {
    items.append((startMs, list))
    var child = items.count - 1
    while child > 0, case let parent = (child - 1) / 2, items[child].startMs < items[parent].startMs {
      items.swapAt(child, parent)
      child = parent
    }
  }

  mutating func removeFirst() -> (startMs: Int64, list: SegmentList)? {
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
