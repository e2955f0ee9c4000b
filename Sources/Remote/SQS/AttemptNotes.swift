import JSON
import Sessions

/// The attempts of a batch: in the store's `attempts/MESSAGE-ID`, written only when something has gone wrong. The count of deliveries
/// of SQS says too much: a delivery may get lost, people look at messages, and a batch that was handed back was no attempt.
struct AttemptNotes: Sendable, Equatable {
  /// The attempts that have begun.
  var attempts = 1
  /// Failures for unknown reasons.
  var failures = 0
}

/// The notes on messages in an object store.
struct AttemptNoteStore: Sendable {
  let objects: any ObjectClient

  private static let maximum = Int64(1) << 30

  private static func key(_ message: String) -> String { "attempts/" + message }

  /// Returns the notes on a message; nil if there are none.
  func read(_ message: String) throws -> AttemptNotes? {
    guard let object = try objects.get(Self.key(message), limit: 1 << 16) else { return nil }
    let members = (try? JSONParser.parse(object.bytes))?.object
    func number(_ name: String) -> Int { Int(min(max(0, members?[name]?.integer ?? 0), Self.maximum)) }
    return AttemptNotes(attempts: number("attempts"), failures: number("failures"))
  }

  func write(_ notes: AttemptNotes, _ message: String) throws {
    let text = JSONValue.object([
      "format": .string("attempt-notes/1"), "attempts": .number(notes.attempts), "failures": .number(notes.failures),
    ]).line
    _ = try objects.put(Self.key(message), .bytes(Array((text + "\n").utf8)), .json, when: .always)
  }

  func remove(_ message: String) throws { try objects.delete(Self.key(message), nil) }
}
