import FileSystem
import JSON

/// The sums of what segments tell of their recording.
package struct RecordingTotals: Sendable, Equatable {
  /// The captures of each interval.
  package private(set) var intervals = DigitCounts()
  package private(set) var figures = HealthFigures()
  package private(set) var labels = LabelCounts()

  package init() {}

  /// The sums of segments.
  package init(_ segments: [PublishedSegment]) {
    for segment in segments {
      add(segment.health, captured: segment.frames.count { $0.isCaptured }, segment.labels)
    }
  }

  /// - Parameter captured: the captures that begin in the segment.
  package mutating func add(_ health: SegmentHealth?, captured: Int, _ labels: LabelCounts) {
    self.labels.add(labels)
    guard let health else { return }
    intervals.add(health.intervalMs, .nearest, count: captured)
    figures.add(health.figures)
  }

  /// Takes away a segment that was added.
  package mutating func remove(_ health: SegmentHealth?, captured: Int, _ labels: LabelCounts) {
    self.labels.remove(labels)
    guard let health else { return }
    var own = DigitCounts()
    own.add(health.intervalMs, .nearest, count: captured)
    intervals.remove(own)
    figures.remove(health.figures)
  }

  /// The health as sums; nil if it is unknown.
  package var counts: JSONValue? {
    if intervals.isEmpty && figures.isEmpty { return nil }
    return .object(figures.members).setting(["intervalsMs": intervals.json])
  }

  /// - Parameters:
  ///   - counts: as of ``counts``.
  ///   - labels: as of ``LabelCounts/json``.
  package init(counts: JSONValue?, labels: JSONValue?) throws(JSONError) {
    if let counts {
      figures = try HealthFigures(counts)
      intervals = try DigitCounts(counts.object?["intervalsMs"])
    }
    self.labels = try LabelCounts(labels)
  }
}

/// The health of a batch or a session.
package struct HealthSummary: Sendable, Equatable {
  private let totals: RecordingTotals
  /// Of the time between batches.
  private let between: HealthFigures
  /// Captures in the recorded time, whether they have an interval or not.
  private let frames: Int
  private let recordedMs: Int64
  private let durationMs: Int64
  private let figures: HealthFigures

  /// - Returns: nil if it is unknown.
  package init?(
    _ totals: RecordingTotals, between: HealthFigures = HealthFigures(), frames: Int, recordedMs: Int64,
    durationMs: Int64
  ) {
    guard !totals.intervals.isEmpty else { return nil }
    (self.totals, self.between, self.frames) = (totals, between, frames)
    (self.recordedMs, self.durationMs) = (recordedMs, durationMs)
    var all = totals.figures
    all.add(between)
    figures = all
  }

  /// The health of a batch; nil if it is unknown.
  package init?(ofBatch segments: [PublishedSegment]) {
    guard let first = segments.first, let last = segments.last else { return nil }
    self.init(
      RecordingTotals(segments), frames: segments.reduce(0) { $0 + $1.frames.count { $0.isCaptured } },
      recordedMs: segments.reduce(0) { $0 + $1.durationMs }, durationMs: last.endMs + last.gapAfterMs - first.startMs)
  }

  /// The captures of batches with an interval.
  package var captures: Int { totals.intervals.count }
  package var missing: Int { figures.missing }
  package var late: Int { figures.late.count }

  /// `60 captures, 3 missing, 6 late by 400 ms`; nil if none is missing or late.
  package var sentence: String? {
    guard missing > 0 || late > 0 else { return nil }
    var parts = [count(captures, "capture")]
    if missing > 0 { parts.append("\(missing) missing") }
    if let lateMs = figures.late.percentileMs(50) { parts.append("\(late) late by \(lateMs) ms") }
    return parts.joined(separator: ", ")
  }

  private var members: [String: JSONValue] {
    var members: [String: JSONValue] = [
      "captures": .number(captures), "expected": .number(captures - figures.extra + missing),
      "missing": .number(missing), "late": .number(late), "clockSteps": .number(figures.clockSteps),
    ]
    members["intervalMs"] = totals.intervals.commonestMs.map { .number($0) }
    for (key, ms) in [
      ("lateP50Ms", figures.late.percentileMs(50)), ("lateP95Ms", figures.late.percentileMs(95)),
      ("lateMaxMs", figures.late.longestMs), ("longestPauseMs", figures.pauses.longestMs),
    ] { members[key] = ms.map { .number($0) } }
    if recordedMs > 0, durationMs > 0 {
      members["capturesPerHour"] = .number(Self.share(Int64(frames), of: recordedMs, times: 3_600_000))
      members["recordedPermille"] = .number(min(1_000, Self.share(recordedMs, of: durationMs, times: 1_000)))
    }
    return members
  }

  package var json: JSONValue { .object(members) }

  /// With the sentence, for the player.
  package var described: JSONValue { json.setting(sentence.map { ["text": .string($0)] } ?? [:]) }

  /// Returns the health of `session.json` without the sums, as ``json``.
  package static func withoutSums(_ json: JSONValue) -> JSONValue {
    .object((json.object ?? [:]).filter { !["counts", "between"].contains($0.key) })
  }

  /// With the sums that it was made from, which later segments are added to.
  package var extensibleJSON: JSONValue {
    var members = members
    members["counts"] = totals.counts
    if !between.isEmpty { members["between"] = .object(between.members) }
    return .object(members)
  }

  /// Returns `part · factor / whole`; 2⁴² if a forged file has such a part that this overflows.
  private static func share(_ part: Int64, of whole: Int64, times factor: Int64) -> Int64 {
    let (product, overflow) = part.multipliedReportingOverflow(by: factor)
    return overflow ? 1 << 42 : product / whole
  }
}
