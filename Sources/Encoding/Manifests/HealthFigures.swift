import JSON

/// The faults of captures. Figures of segments add up to those of their session.
package struct HealthFigures: Sendable, Equatable {
  /// Captures that the recorder left out.
  package var missing = 0
  /// Captures between those of the interval.
  package var extra = 0
  /// Captures that came after one with a later time.
  package var clockSteps = 0
  /// By how much captures were late, of those that were late.
  package var late = DigitCounts()
  /// The pauses before captures.
  package var pauses = DigitCounts()

  package init() {}

  package var isEmpty: Bool { self == HealthFigures() }

  package mutating func add(_ other: HealthFigures) {
    missing += other.missing
    extra += other.extra
    clockSteps += other.clockSteps
    late.add(other.late)
    pauses.add(other.pauses)
  }

  /// Takes away figures that were added.
  package mutating func remove(_ other: HealthFigures) {
    missing = max(0, missing - other.missing)
    extra = max(0, extra - other.extra)
    clockSteps = max(0, clockSteps - other.clockSteps)
    late.remove(other.late)
    pauses.remove(other.pauses)
  }

  /// The members that are not 0.
  package var members: [String: JSONValue] {
    var members: [String: JSONValue] = [:]
    for (key, count) in [("missing", missing), ("extra", extra), ("clockSteps", clockSteps)] where count > 0 {
      members[key] = .number(count)
    }
    if !late.isEmpty { members["lateMs"] = late.json }
    if !pauses.isEmpty { members["pausesMs"] = pauses.json }
    return members
  }

  /// - Parameter json: has ``members``, and maybe others.
  package init(_ json: JSONValue) throws(JSONError) {
    func count(_ key: String) throws(JSONError) -> Int {
      guard let value = json.object?[key] else { return 0 }
      guard let count = value.integer, (0...Int64(1) << 42).contains(count) else { throw JSONError("\(key): no count") }
      return Int(count)
    }
    guard json.object != nil else { throw JSONError("no figures") }
    (missing, extra, clockSteps) = (try count("missing"), try count("extra"), try count("clockSteps"))
    (late, pauses) = (try DigitCounts(json.object?["lateMs"]), try DigitCounts(json.object?["pausesMs"]))
  }
}

/// The health of a segment, in its manifest: `"health":{"intervalMs":1000,"missing":1,"lateMs":[[400,2]]}`. It has the figures of the
/// captures that begin in the segment.
package struct SegmentHealth: Sendable, Equatable {
  /// The member of a manifest.
  package static let key = "health"

  /// The interval of the captures of its batch, in milliseconds.
  package var intervalMs: Int64
  package var figures = HealthFigures()

  package init(intervalMs: Int64, _ figures: HealthFigures) { (self.intervalMs, self.figures) = (intervalMs, figures) }

  package var json: JSONValue { .object(figures.members).setting(["intervalMs": .number(intervalMs)]) }

  package init(_ json: JSONValue) throws(JSONError) {
    intervalMs = try json.required("intervalMs", in: Self.intervals)
    figures = try HealthFigures(json)
  }

  /// The intervals that can be read, in milliseconds.
  package static let intervals: ClosedRange<Int64> = 1...1 << 42

  /// Returns the health of a manifest; nil if it is unknown, or cannot be read, which `verify` reports.
  package static func of(_ manifest: JSONValue) -> SegmentHealth? {
    manifest.object?[key].flatMap { try? SegmentHealth($0) }
  }

  /// Returns the health of segments that become one; nil if it is unknown. The interval is that of the last one.
  package static func joined(_ parts: [SegmentHealth]) -> SegmentHealth? {
    guard var joined = parts.last else { return nil }
    for part in parts.dropLast() { joined.figures.add(part.figures) }
    return joined
  }
}
