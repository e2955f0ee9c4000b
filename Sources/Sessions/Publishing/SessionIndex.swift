// The index of a session: what is published of it, one entry a segment, with the totals of all. Each view of the session is made
// from it. It can always be made again from the segments' manifests. Pure.

import Encoding
import FrameBatches
import JSON

/// A segment as the index of its session lists it.
package struct SessionEntry: Sendable, Equatable {
  package let startMs: Int64
  package let durationMs: Int64
  let width: Int
  let height: Int
  let bytes: Int
  let sha256: String
  /// How many frames it shows, continued ones included.
  package let frames: Int
  /// How many frames begin in it: one that continues in the next segment counts once.
  let captured: Int
  let intervalMs: Int64
  let gapAfterMs: Int64
  let isFinal: Bool
  /// The beginning of the digest of its batch.
  let batch: String

  package var file: String { SegmentName.video(startMs) }
  var endMs: Int64 { startMs + durationMs }

  /// The unrecorded time up to the next segment. Within a batch any distance is one. Batches meet with some jitter, and
  /// less than half an interval from the end of the one, gap included, to the beginning of the other is a seam.
  func gap(before next: SessionEntry) -> SessionIndex.Gap? {
    let distance = next.startMs - endMs
    let isSeam = batch != next.batch && 2 * (distance - gapAfterMs) < intervalMs
    return distance > 0 && (gapAfterMs > 0 || !isSeam) ? SessionIndex.Gap(startMs: endMs, endMs: next.startMs) : nil
  }

  /// The gap behind it, where it is the session's last segment.
  var closingGap: SessionIndex.Gap? {
    gapAfterMs > 0 ? SessionIndex.Gap(startMs: endMs, endMs: endMs + gapAfterMs) : nil
  }
}

extension PublishedSegment {
  package var entry: SessionEntry {
    SessionEntry(
      startMs: startMs, durationMs: durationMs, width: width, height: height, bytes: bytes, sha256: sha256,
      frames: frames.count, captured: frames.count { $0.isCaptured }, intervalMs: intervalMs, gapAfterMs: gapAfterMs,
      isFinal: isFinal, batch: String(batchDigest.prefix(16)))
  }

  /// The unrecorded time up to the next segment: see ``SessionEntry/gap(before:)``.
  package func gap(before next: PublishedSegment) -> SessionIndex.Gap? { entry.gap(before: next.entry) }
}

/// What is published of a session.
package struct SessionIndex: Sendable, Equatable {
  /// Time that nobody recorded, in unix milliseconds.
  package struct Gap: Sendable, Equatable {
    package let startMs: Int64
    package let endMs: Int64
  }

  package let session: SessionID
  package private(set) var startMs: Int64
  /// How many segments there are.
  package private(set) var count: Int
  /// Captured frames; one that continues in the next segment counts once.
  package private(set) var frames: Int
  package private(set) var bytes: Int
  /// The last segments, in the order of their starts, at least one; all of them where ``isWhole``.
  package private(set) var entries: [SessionEntry]

  /// - Parameter entries: all of the session, in the order of their starts.
  /// - Returns: nil where there is none.
  init?(session: SessionID, entries: [SessionEntry]) {
    guard let first = entries.first else { return nil }
    self.session = session
    self.entries = entries
    startMs = first.startMs
    count = entries.count
    frames = entries.reduce(0) { $0 + $1.captured }
    bytes = entries.reduce(0) { $0 + $1.bytes }
  }

  /// - Parameter segments: all of the session, in the order of their starts.
  /// - Returns: nil where there is none.
  package init?(session: SessionID, segments: [PublishedSegment]) {
    self.init(session: session, entries: segments.map(\.entry))
  }

  /// Whether ``entries`` are all segments.
  var isWhole: Bool { count == entries.count }

  private var last: SessionEntry { entries[entries.count - 1] }
  package var endMs: Int64 { last.endMs + last.gapAfterMs }
  package var durationMs: Int64 { endMs - startMs }
  /// Whether the segment that ends the session is there.
  package var isComplete: Bool { last.isFinal }

  /// The gaps between the entries, and behind the last.
  package var gaps: [Gap] {
    zip(entries, entries.dropFirst()).compactMap { $0.gap(before: $1) } + [last.closingGap].compactMap { $0 }
  }

  /// Adds segments that start behind the first entry, or, where the index is whole, anywhere.
  mutating func add(_ new: [SessionEntry]) {
    entries = (entries + new).sorted { $0.startMs < $1.startMs }
    count += new.count
    frames += new.reduce(0) { $0 + $1.captured }
    bytes += new.reduce(0) { $0 + $1.bytes }
    startMs = min(startMs, entries[0].startMs)
  }

  /// Takes the first entries out of the list; the totals stay.
  mutating func removeFirst(_ count: Int) -> [SessionEntry] {
    defer { entries.removeFirst(count) }
    return Array(entries[..<count])
  }

  /// Puts entries back that come before all others.
  mutating func putBack(_ earlier: [SessionEntry]) { entries = earlier + entries }
}

// MARK: - As JSON

extension SessionIndex {
  /// The members of an object.
  var members: [String: JSONValue] {
    [
      "session": .string(session.description), "startMs": .number(startMs), "segments": .number(count),
      "frames": .number(frames), "bytes": .number(bytes), "entries": .array(entries.map(\.json)),
    ]
  }

  init(_ json: JSONValue, of session: SessionID) throws(JSONError) {
    guard try json.required("session", .string) == session.description else { throw JSONError("session: another one") }
    self.session = session
    startMs = try json.count("startMs")
    count = Int(try json.count("segments"))
    frames = Int(try json.count("frames"))
    bytes = Int(try json.count("bytes"))
    entries = try SessionEntry.all(json.required("entries", .array))
    guard count >= entries.count, startMs <= entries[0].startMs else { throw JSONError("segments: too few") }
  }
}

extension SessionEntry {
  var json: JSONValue {
    .object([
      "startMs": .number(startMs), "durationMs": .number(durationMs), "width": .number(width),
      "height": .number(height), "bytes": .number(bytes), "sha256": .string(sha256), "frames": .number(frames),
      "captured": .number(captured), "intervalMs": .number(intervalMs), "gapAfterMs": .number(gapAfterMs),
      "final": .bool(isFinal), "batch": .string(batch),
    ])
  }

  private init(_ json: JSONValue) throws(JSONError) {
    startMs = try json.count("startMs")
    durationMs = try json.count("durationMs")
    width = Int(try json.count("width"))
    height = Int(try json.count("height"))
    bytes = Int(try json.count("bytes"))
    sha256 = try json.required("sha256", .string)
    frames = Int(try json.count("frames"))
    captured = Int(try json.count("captured"))
    intervalMs = try json.count("intervalMs")
    gapAfterMs = try json.count("gapAfterMs")
    isFinal = try json.required("final", .bool)
    batch = try json.required("batch", .string)
  }

  /// Reads a list of entries, at least one, in the order of their starts.
  static func all(_ list: [JSONValue]) throws(JSONError) -> [SessionEntry] {
    let entries = try list.map { (json) throws(JSONError) in try SessionEntry(json) }
    guard !entries.isEmpty, zip(entries, entries.dropFirst()).allSatisfy({ $0.startMs < $1.startMs }) else {
      throw JSONError("entries: not in order")
    }
    return entries
  }
}

extension JSONValue {
  /// A number within bounds far above what we write, and far below what a sum of them could overflow.
  fileprivate func count(_ key: String) throws(JSONError) -> Int64 {
    let value = try required(key, .integer)
    guard (0...(1 << 42)).contains(value) else { throw JSONError("\(key): out of range") }
    return value
  }
}
