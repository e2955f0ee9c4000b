import Encoding
import FileSystem
import FrameBatches
import JSON
import Logging
import Sessions

/// The outcome of a batch, told to the next step of a pipeline. docs/events.md describes it, docs/event.schema.json is its schema.
package struct BatchEvent: Event {
  private static let format = "batch-event/1"
  /// The number of segments, gaps and refused frames that an event may still list.
  private struct Room { var (segments, gaps, refused) = (1_000, 1_000, 1_000) }

  /// The event's name, the same as in the log.
  package enum Outcome: String, Sendable {
    case published = "batch.published"
    case duplicate = "batch.duplicate"
    /// The worker refused all sessions of the batch and keeps nothing of it.
    case refused = "batch.refused"
    case quarantined = "batch.quarantined"

    /// The outcome of a batch that is retired.
    init(of receipts: [Receipt]) {
      let published = receipts.filter { $0.refusal == nil }
      self = published.isEmpty ? .refused : published.allSatisfy(\.duplicate) ? .duplicate : .published
    }
  }

  package let batch: String
  package let outcome: Outcome
  /// The same for each event of the same batch with the same outcome, also after a crash. A batch that was published has the
  /// key of its later duplicates.
  package let key: String
  /// The event in one line of JSON.
  package let line: String
  /// The key does not depend on the trace: the same batch may come again with another one.
  package let traceParent: TraceParent?
  package var about: Logger.Metadata { ["batch": "\(batch)"] }

  /// - Parameters:
  ///   - receipts: of the batch's sessions.
  ///   - durationsMs: the time of the whole and of its stages, which the key does not depend on.
  ///   - traceParent: the step of the producer's trace, which the event has.
  ///   - step: the worker's own step of it.
  package init(
    batch: String, _ receipts: [Receipt], durationsMs: JSONValue? = nil, traceParent: TraceParent? = nil,
    step: TraceParent? = nil, timeMs: Int64 = WallClock.nowMs
  ) {
    var room = Room()
    let sessions = receipts.map { Self.json($0, &room) }
    let identities = receipts.map { $0.published.first?.batchDigest ?? "refused \($0.session)" }
    var members = ["sessions": JSONValue.array(sessions)]
    members["durationsMs"] = durationsMs
    self.init(
      batch, Outcome(of: receipts), key: ["published"] + identities, members, traceParent, step, timeMs)
  }

  /// - Parameters:
  ///   - reason: why the batch goes to quarantine.
  ///   - traceParent: the step of the producer's trace, which the event has.
  ///   - step: the worker's own step of it.
  package init(
    batch: String, _ reason: BadBatch, traceParent: TraceParent? = nil, step: TraceParent? = nil,
    timeMs: Int64 = WallClock.nowMs
  ) {
    let members: [String: JSONValue] = [
      "operation": .string(reason.operation), "file": .string(reason.file), "cause": .string(reason.cause),
      "advice": .string(reason.advice),
    ]
    self.init(
      batch, .quarantined, key: ["quarantined", reason.operation, reason.file, reason.cause],
      ["sessions": .array([]), "reason": .object(members)], traceParent, step, timeMs)
  }

  /// - Parameter key: the parts of the key, with the name of the batch.
  private init(
    _ batch: String, _ outcome: Outcome, key: [String], _ members: [String: JSONValue], _ traceParent: TraceParent?,
    _ step: TraceParent?, _ timeMs: Int64
  ) {
    self.batch = batch
    self.traceParent = step ?? traceParent
    self.outcome = outcome
    var sum = SHA256()
    // The lengths keep the parts apart.
    for part in [batch] + key { sum.update("\(part.utf8.count) \(part)\n") }
    self.key = sum.finish()
    let trace = traceParent.map { [TraceParent.key: JSONValue.string($0.description)] } ?? [:]
    line =
      JSONValue.object([
        "format": .string(Self.format), "event": .string(outcome.rawValue), "key": .string(self.key),
        "timeMs": .number(timeMs), "batch": .string(batch),
      ]).setting(members).setting(trace).line
  }

  private static func json(_ receipt: Receipt, _ room: inout Room) -> JSONValue {
    let segments = receipt.published.prefix(room.segments)
    let gaps = receipt.published.filter { $0.gapAfterMs > 0 }.prefix(room.gaps)
    let refused = receipt.refused.prefix(room.refused)
    room.segments -= segments.count
    room.gaps -= gaps.count
    room.refused -= refused.count
    let bounds: [String: JSONValue] =
      if let refusal = receipt.refusal {
        ["refusal": .string(refusal)]
      } else {
        ["startMs": .number(receipt.startMs), "endMs": .number(receipt.endMs)]
      }
    let health: [String: JSONValue] = receipt.health.map { [SegmentHealth.key: $0.json] } ?? [:]
    return .object([
      "session": .string(receipt.session.description), "duplicate": .bool(receipt.duplicate),
      "frames": .number(receipt.frames),
      "bytes": .number(receipt.bytes), "segmentCount": .number(receipt.segments),
      "segments": .array(segments.map(json)),
      "gaps": .array(
        gaps.map { .object(["startMs": .number($0.endMs), "endMs": .number($0.endMs + $0.gapAfterMs)]) }),
      "refusedCount": .number(receipt.refused.count),
      "refused": .array(refused.map(\.json)),
      "warnings": .array(receipt.warnings.map { .string($0) }),
    ]).setting(bounds).setting(health)
  }

  private static func json(_ segment: PublishedSegment) -> JSONValue {
    .object([
      "file": .string(segment.file), "startMs": .number(segment.startMs), "durationMs": .number(segment.durationMs),
      "bytes": .number(segment.bytes), "sha256": .string(segment.sha256),
    ])
  }
}
