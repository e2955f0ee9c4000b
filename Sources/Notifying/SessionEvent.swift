import Encoding
import FileSystem
import FrameBatches
import JSON
import Logging
import Sessions

/// The event of a session that has ended, is in a store as a whole, or whose screen is frozen. docs/events.md describes it, docs/event.schema.json is its
/// schema.
package struct SessionEvent: Event {
  private static let format = "session-event/1"

  package let key: String
  package let line: String
  package let traceParent: TraceParent?
  private let session: SessionID

  package var about: Logger.Metadata { ["session": "\(session)"] }

  /// - Parameter timeMs: when the event is made, in unix milliseconds.
  package init(ended session: EndedSession, timeMs: Int64 = WallClock.nowMs) {
    self.init("session.ended", session, [:], key: "\(session.end.endedMs)", timeMs)
  }

  /// - Parameters:
  ///   - store: the store's name.
  ///   - timeMs: when the event is made, in unix milliseconds.
  package init(uploaded session: EndedSession, to store: String, timeMs: Int64 = WallClock.nowMs) {
    // A session that gets a late batch is uploaded again.
    self.init(
      "session.uploaded", session, ["store": .string(store)],
      key: "\(store)\n\(session.end.endedMs)\n\(session.segments)",
      timeMs)
  }

  /// - Parameters:
  ///   - files: those that were made of it.
  ///   - timeMs: when the event is made, in unix milliseconds.
  package init(exported session: EndedSession, _ files: [ExportedFile], timeMs: Int64 = WallClock.nowMs) {
    let list = files.map { file in
      JSONValue.object([
        "file": .string(ExportedFile.directory + "/" + file.name), "bytes": .number(file.bytes),
      ])
    }
    self.init("session.exported", session, ["files": .array(list)], key: "\(session.end.endedMs)", timeMs)
  }

  /// The event of a screen that has not changed for long.
  ///
  /// - Parameters:
  ///   - sinceMs: the first capture that shows its picture, in unix milliseconds.
  ///   - untilMs: the last one.
  ///   - isBlank: whether all pixels have one colour.
  ///   - timeMs: when the event is made, in unix milliseconds.
  package init(
    frozen session: SessionID, sinceMs: Int64, untilMs: Int64, isBlank: Bool, timeMs: Int64 = WallClock.nowMs
  ) {
    self.init(
      "session.frozen", session,
      ["sinceMs": .number(sinceMs), "untilMs": .number(untilMs), "blank": .bool(isBlank)], key: "\(sinceMs)", nil,
      timeMs)
  }

  private init(_ name: String, _ ended: EndedSession, _ facts: [String: JSONValue], key parts: String, _ timeMs: Int64)
  {
    var members: [String: JSONValue] = [
      "cause": .string(ended.end.cause.rawValue), "endedMs": .number(ended.end.endedMs),
      "startMs": .number(ended.startMs), "endMs": .number(ended.endMs), "segmentCount": .number(ended.segments),
      "frames": .number(ended.frames), "bytes": .number(ended.bytes),
    ]
    members[SegmentHealth.key] = ended.health
    self.init(name, ended.end.session, members.merging(facts) { $1 }, key: parts, ended.traceParent, timeMs)
  }

  private init(
    _ name: String, _ session: SessionID, _ facts: [String: JSONValue], key parts: String, _ traceParent: TraceParent?,
    _ timeMs: Int64
  ) {
    (self.session, self.traceParent) = (session, traceParent)
    var sum = SHA256()
    sum.update("\(name)\n\(session)\n\(parts)\n")
    key = sum.finish()
    var members: [String: JSONValue] = [
      "format": .string(Self.format), "event": .string(name), "key": .string(key), "timeMs": .number(timeMs),
      // Readers of batches' events pass over it.
      "session": .string(session.description), "batch": .string(""), "sessions": .array([]),
    ]
    members[TraceParent.key] = traceParent.map { .string($0.description) }
    line = JSONValue.object(members).setting(facts).line
  }
}
