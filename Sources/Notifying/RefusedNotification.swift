import FileSystem
import FrameBatches
import JSON

/// An event that its receiver has refused, with the reason. It waits for an operator.
package struct RefusedNotification: Sendable {
  private static let format = "refused-notification/1"
  /// Maximum size of its file in bytes.
  static let maximumBytes = 16 << 20

  /// The event's idempotency key.
  package let key: String
  /// The event: one line of JSON, as it was sent.
  package let event: String
  /// The reason of the refusal.
  package let cause: String
  /// The time of the refusal, in unix milliseconds.
  package let timeMs: Int64

  /// - Parameter timeMs: in unix milliseconds.
  package init(key: String, event: String, cause: String, timeMs: Int64 = WallClock.nowMs) {
    (self.key, self.event, self.cause, self.timeMs) = (key, event, cause, timeMs)
  }

  /// Reads a file of ``bytes``; returns nil for another file.
  ///
  /// - Parameter key: the key that the file's name has. After its delivery, the event is removed by it.
  init?(_ bytes: [UInt8], named key: String) {
    guard let members = try? JSONParser.parse(bytes).object, members["format"]?.string == Self.format,
      let event = members["event"], event.object != nil, members["key"]?.string == key, Self.isKey(key)
    else { return nil }
    self.init(
      key: key, event: event.line, cause: members["cause"]?.string ?? "", timeMs: members["timeMs"]?.integer ?? 0)
  }

  /// The file's content.
  var bytes: [UInt8] { json.bytes(pretty: true) + [UInt8(ascii: "\n")] }

  package var json: JSONValue {
    .object([
      "format": .string(Self.format), "key": .string(key), "cause": .string(cause), "timeMs": .number(timeMs),
      "event": (try? JSONParser.parse(Array(event.utf8))) ?? .null,
    ])
  }

  /// A text of the event: `event`, `batch`.
  package func text(_ member: String) -> String? { json.object?["event"]?.object?[member]?.string }

  /// The step of the trace that the batch's producer has stated.
  package var traceParent: TraceParent? { text(TraceParent.key).flatMap(TraceParent.init) }

  /// Whether a text is an event's key: a SHA-256 in hexadecimal digits. It is safe as a file name.
  package static func isKey(_ text: String) -> Bool {
    text.utf8.count == 64 && text.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
  }
}
