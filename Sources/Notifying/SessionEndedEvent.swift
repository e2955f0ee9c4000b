import FileSystem
import FrameBatches
import JSON
import Logging
import Sessions

/// The event of a session that has ended. docs/events.md describes it, docs/event.schema.json is its schema.
package struct SessionEndedEvent: Event {
  private static let format = "session-event/1"
  private static let name = "session.ended"

  package let key: String
  package let line: String
  package let traceParent: TraceParent?
  private let session: SessionID

  package var about: Logger.Metadata { ["session": "\(session)"] }

  /// - Parameter timeMs: when the event is made, in unix milliseconds.
  package init(_ ended: EndedSession, timeMs: Int64 = WallClock.nowMs) {
    (session, traceParent) = (ended.end.session, ended.traceParent)
    var sum = SHA256()
    sum.update("\(Self.name)\n\(session)\n\(ended.end.endedMs)\n")
    key = sum.finish()
    var members: [String: JSONValue] = [
      "format": .string(Self.format), "event": .string(Self.name), "key": .string(key), "timeMs": .number(timeMs),
      "session": .string(session.description), "cause": .string(ended.end.cause.rawValue),
      "endedMs": .number(ended.end.endedMs), "startMs": .number(ended.startMs), "endMs": .number(ended.endMs),
      // Readers of batches' events pass over it.
      "batch": .string(""), "sessions": .array([]), "segmentCount": .number(ended.segments),
      "frames": .number(ended.frames), "bytes": .number(ended.bytes),
    ]
    members[TraceParent.key] = traceParent.map { .string($0.description) }
    line = JSONValue.object(members).line
  }
}
