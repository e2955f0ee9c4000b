// The index of a session: an entry for each published segment, and the totals. Each view of the session is made from it. It can
// always be rebuilt from the segments' manifests. Pure.

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
  /// The number of frames, continued ones included.
  package let frames: Int
  /// The number of frames that begin in it.
  let captured: Int
  let intervalMs: Int64
  let gapAfterMs: Int64
  let capturesChanges: Bool
  let isFinal: Bool
  /// The beginning of the digest of its batch.
  let batch: String
  let health: SegmentHealth?
  let labels: LabelCounts
  /// Where it lies in a pack; nil if it is an object of its own, or a file.
  var pack: PackPlace?

  package var file: String { SegmentName.video(startMs) }

  /// The segment as a file of its own.
  var unpacked: SessionEntry {
    var entry = self
    entry.pack = nil
    return entry
  }

  var endMs: Int64 { startMs + durationMs }
  /// The end of the session if it is the last segment: a gap behind it belongs to the session.
  package var endWithGapMs: Int64 { endMs + gapAfterMs }

  /// The longest time, in milliseconds, for which a picture is held between two batches of a recorder that captures on change. A
  /// sample may last half an hour longer.
  static let maximumHoldMs: Int64 = 6 * 3_600_000

  /// Returns the unrecorded time up to the next segment. Within a batch any distance is a gap. Batches meet with some jitter:
  /// less than half an interval from the end of the one, gap included, to the beginning of the other is a seam. Between batches of a
  /// recorder that captures on change, the picture has not changed.
  func gap(before next: SessionEntry) -> SessionIndex.Gap? {
    let distance = next.startMs - endMs
    let isSeam = batch != next.batch && 2 * (distance - gapAfterMs) < intervalMs
    return distance > 0 && (gapAfterMs > 0 || !(isSeam || isHeld(until: next)))
      ? SessionIndex.Gap(startMs: endMs, endMs: next.startMs) : nil
  }

  /// Whether its last picture stays on screen until the next segment, because the recorder of both captures on change.
  func isHeld(until next: SessionEntry) -> Bool {
    batch != next.batch && capturesChanges && next.capturesChanges && !isFinal
      && (0...Self.maximumHoldMs).contains(next.startMs - endMs)
  }

  /// Returns the figures of the unrecorded time up to the next segment. Those within a batch are in its segments.
  func figures(before next: SessionEntry) -> HealthFigures? {
    guard batch != next.batch, next.health != nil, let intervalMs = health?.intervalMs, let gap = gap(before: next)
    else { return nil }
    return CaptureSchedule.figures(ofGap: gap.lengthMs, intervalMs: intervalMs)
  }

  /// The gap behind it if it is the session's last segment.
  package var closingGap: SessionIndex.Gap? {
    gapAfterMs > 0 ? SessionIndex.Gap(startMs: endMs, endMs: endMs + gapAfterMs) : nil
  }
}

extension PublishedSegment {
  package var entry: SessionEntry {
    SessionEntry(
      startMs: startMs, durationMs: durationMs, width: width, height: height, bytes: bytes, sha256: sha256,
      frames: frames.count, captured: frames.count { $0.isCaptured }, intervalMs: intervalMs, gapAfterMs: gapAfterMs,
      capturesChanges: capturesChanges, isFinal: isFinal, batch: String(batchDigest.prefix(16)), health: health,
      labels: labels)
  }

  /// See ``SessionEntry/isHeld(until:)``.
  func isHeld(until next: PublishedSegment) -> Bool { entry.isHeld(until: next.entry) }

  /// See ``SessionEntry/gap(before:)``.
  package func gap(before next: PublishedSegment) -> SessionIndex.Gap? { entry.gap(before: next.entry) }
}

/// The published segments of a session.
package struct SessionIndex: Sendable, Equatable {
  /// Unrecorded time, in unix milliseconds.
  package struct Gap: Sendable, Equatable {
    package let startMs: Int64
    package let endMs: Int64

    package init(startMs: Int64, endMs: Int64) {
      (self.startMs, self.endMs) = (startMs, endMs)
    }

    package var lengthMs: Int64 { endMs - startMs }
  }

  package let session: SessionID
  package private(set) var startMs: Int64
  package private(set) var count: Int
  /// Captured frames; one that continues in the next segment counts once.
  package private(set) var frames: Int
  package private(set) var bytes: Int
  /// The sums of what its segments tell of their recording.
  package private(set) var totals: RecordingTotals
  /// The last segments, in the order of their starts, at least one; maybe all.
  package private(set) var entries: [SessionEntry]
  /// Whether the session has ended: its end is recorded, or a segment is final. A later segment does not reopen it.
  package internal(set) var isComplete: Bool
}

extension SessionIndex {
  /// - Parameters:
  ///   - entries: all of the session, in the order of their starts.
  ///   - hasEnded: whether its end is recorded.
  /// - Returns: nil if there are none.
  init?(session: SessionID, entries: [SessionEntry], hasEnded: Bool = false) {
    guard let first = entries.first else { return nil }
    self.init(
      session: session, startMs: first.startMs, count: entries.count, frames: entries.reduce(0) { $0 + $1.captured },
      bytes: entries.reduce(0) { $0 + $1.bytes }, totals: RecordingTotals(entries), entries: entries,
      isComplete: hasEnded || entries.contains(where: \.isFinal))
  }

  /// - Parameters:
  ///   - segments: all of the session, in the order of their starts.
  ///   - hasEnded: whether its end is recorded.
  /// - Returns: nil if there are none.
  package init?(session: SessionID, segments: [PublishedSegment], hasEnded: Bool = false) {
    self.init(session: session, entries: segments.map(\.entry), hasEnded: hasEnded)
  }

  var last: SessionEntry { entries[entries.count - 1] }
  package var endMs: Int64 { last.endWithGapMs }
  package var durationMs: Int64 { endMs - startMs }

  /// The gaps between the entries, and behind the last.
  package var gaps: [Gap] {
    zip(entries, entries.dropFirst()).compactMap { $0.gap(before: $1) } + [last.closingGap].compactMap { $0 }
  }

  /// The health of the session; nil if it is unknown. The index lists all segments.
  package var health: HealthSummary? {
    var between = HealthFigures()
    for (entry, next) in zip(entries, entries.dropFirst()) {
      if let figures = entry.figures(before: next) { between.add(figures) }
    }
    return health(between: between, gapsMs: gaps.reduce(0) { $0 + $1.lengthMs })
  }

  /// - Parameters:
  ///   - between: the figures of the gaps between batches.
  ///   - gapsMs: the length of all gaps.
  func health(between: HealthFigures, gapsMs: Int64) -> HealthSummary? {
    HealthSummary(
      totals, between: between, frames: frames, recordedMs: durationMs - gapsMs, durationMs: durationMs)
  }

  /// Returns the index with earlier segments in its list, which the totals count already.
  func preceded(by earlier: [SessionEntry]) -> SessionIndex { listing(earlier + entries) }

  /// Returns the index with other entries in its list, which the totals count already.
  func listing(_ entries: [SessionEntry]) -> SessionIndex {
    var index = self
    index.entries = entries
    return index
  }

  /// Adds segments that start behind the first entry, or anywhere if the index lists all segments.
  ///
  /// - Parameter others: segments that count, and are listed elsewhere.
  mutating func add(_ new: [SessionEntry], elsewhere others: [SessionEntry] = []) {
    entries = (entries + new).sorted { $0.startMs < $1.startMs }
    for entry in new + others {
      count += 1
      frames += entry.captured
      bytes += entry.bytes
      totals.add(entry)
      startMs = min(startMs, entry.startMs)
      isComplete = isComplete || entry.isFinal
    }
  }

  /// Removes the last segment. The one before it must be listed.
  mutating func removeLast() -> SessionEntry {
    let last = entries.removeLast()
    count -= 1
    frames -= last.captured
    bytes -= last.bytes
    totals.remove(last)
    return last
  }

  /// Takes segments out of the totals that start before all listed entries.
  ///
  /// - Parameter startMs: the start of the first segment that stays.
  mutating func forget(_ earlier: [SessionEntry], startMs: Int64) {
    count -= earlier.count
    frames -= earlier.reduce(0) { $0 + $1.captured }
    bytes -= earlier.reduce(0) { $0 + $1.bytes }
    for entry in earlier { totals.remove(entry) }
    self.startMs = startMs
  }

  /// Whether both count the same segments: a session only grows, so equal totals mean equal lists.
  func hasTotals(of other: SessionIndex) -> Bool {
    (startMs, frames, bytes, totals) == (other.startMs, other.frames, other.bytes, other.totals)
  }

  /// Removes the first entries from the list. The totals stay.
  mutating func removeFirst(_ count: Int) -> [SessionEntry] {
    defer { entries.removeFirst(count) }
    return Array(entries[..<count])
  }
}

extension RecordingTotals {
  init(_ entries: [SessionEntry]) {
    self.init()
    for entry in entries { add(entry) }
  }

  mutating func add(_ entry: SessionEntry) { add(entry.health, captured: entry.captured, entry.labels) }
  mutating func remove(_ entry: SessionEntry) { remove(entry.health, captured: entry.captured, entry.labels) }
}

// MARK: - As JSON

extension SessionIndex {
  /// The members of an object.
  var members: [String: JSONValue] {
    var members: [String: JSONValue] = [
      "session": .string(session.description), "startMs": .number(startMs), "segments": .number(count),
      "frames": .number(frames), "bytes": .number(bytes), "entries": .array(entries.map(\.json)),
    ]
    members[SegmentHealth.key] = totals.counts
    if !totals.labels.isEmpty { members[SegmentLabels.key] = totals.labels.json }
    return members
  }

  init(_ json: JSONValue, of session: SessionID) throws(JSONError) {
    guard try json.required("session", .string) == session.description else { throw JSONError("session: another one") }
    self.session = session
    startMs = try json.count("startMs")
    count = Int(try json.count("segments"))
    frames = Int(try json.count("frames"))
    bytes = Int(try json.count("bytes"))
    totals = try RecordingTotals(
      counts: json.object?[SegmentHealth.key], labels: json.object?[SegmentLabels.key])
    entries = try SessionEntry.all(json.required("entries", .array))
    isComplete = json.object?["end"]?.object != nil || entries.contains(where: \.isFinal)
    guard count >= entries.count, startMs <= entries[0].startMs else { throw JSONError("segments: too few") }
  }
}

extension SessionEntry {
  /// An array, because an object takes twice the bytes and the time for each batch.
  var json: JSONValue {
    let numbers = [
      startMs, durationMs, Int64(width), Int64(height), Int64(bytes), Int64(frames), Int64(captured), intervalMs,
      gapAfterMs, isFinal ? 1 : 0,
    ]
    // Earlier versions read an entry of 12, 13 or 21 items only.
    let facts = facts
    let further: [JSONValue] =
      capturesChanges || pack != nil || facts != nil
      ? [.number(capturesChanges ? 1 : 0)] + (pack?.items ?? []) + (facts.map { [$0] } ?? []) : []
    // Earlier versions only compare the batches of entries, and the interval is one for all of a batch.
    let name = batch + (health.map { "~\($0.intervalMs)" } ?? "")
    return .array(numbers.map { .number($0) } + [.string(name), .string(sha256)] + further)
  }

  /// The figures and labels, if there are any.
  private var facts: JSONValue? {
    var members = health?.figures.members ?? [:]
    if !labels.isEmpty { members[SegmentLabels.key] = labels.json }
    return members.isEmpty ? nil : .object(members)
  }

  /// Reads the health of an entry.
  ///
  /// - Parameters:
  ///   - intervalMs: of the entry's batch, as text; nil if it has none.
  ///   - facts: nil if there are none.
  private static func health(_ intervalMs: Substring?, _ facts: JSONValue?) throws(JSONError) -> SegmentHealth? {
    guard let intervalMs else { return nil }
    guard let interval = Int64(intervalMs), SegmentHealth.intervals.contains(interval) else {
      throw JSONError("entries: no interval")
    }
    return SegmentHealth(intervalMs: interval, try HealthFigures(facts ?? .object([:])))
  }

  private init(_ json: JSONValue) throws(JSONError) {
    let packed = 13 + PackPlace.itemCount
    guard let items = json.array, [12, 13, 14, packed, packed + 1].contains(items.count),
      let batch = items[10].string,
      let sha256 = items[11].string
    else {
      throw JSONError("entries: not as we write them")
    }
    func number(_ index: Int) throws(JSONError) -> Int64 {
      guard let value = items[index].integer, JSONValue.counts.contains(value) else {
        throw JSONError("entries: a number out of range")
      }
      return value
    }
    startMs = try number(0)
    durationMs = try number(1)
    width = Int(try number(2))
    height = Int(try number(3))
    bytes = Int(try number(4))
    frames = Int(try number(5))
    captured = Int(try number(6))
    intervalMs = try number(7)
    gapAfterMs = try number(8)
    isFinal = try number(9) != 0
    capturesChanges = items.count > 12 ? try number(12) != 0 : false
    if items.count >= packed {
      pack = try PackPlace(items[13..<packed])
    }
    let names = batch.split(separator: "~", maxSplits: 1, omittingEmptySubsequences: false)
    let facts = items.count == 14 || items.count > packed ? items.last : nil
    health = try Self.health(names.count > 1 ? names[1] : nil, facts)
    labels = try LabelCounts(facts?.object?[SegmentLabels.key])
    (self.batch, self.sha256) = (String(names[0]), sha256)
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
  /// Bounds far above what we write, and far below what a sum could overflow.
  fileprivate static let counts = Int64(0)...(1 << 42)

  /// Returns a member that counts something.
  package func count(_ key: String) throws(JSONError) -> Int64 { try required(key, in: Self.counts) }
}
