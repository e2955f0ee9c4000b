import FileSystem
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
  /// Conditional writes that lose against another worker.
  private static let attempts = 5

  private static func key(_ message: String) -> String { "attempts/" + message }

  /// Returns the notes on a message; nil if there are none.
  func read(_ message: String) throws -> AttemptNotes? { try readTagged(message)?.notes }

  private func readTagged(_ message: String) throws -> (notes: AttemptNotes, tag: ObjectTag)? {
    guard let object = try objects.get(Self.key(message), limit: 1 << 16) else { return nil }
    let members = (try? JSONParser.parse(object.bytes))?.object
    func number(_ name: String) -> Int { Int(min(max(0, members?[name]?.integer ?? 0), Self.maximum)) }
    return (AttemptNotes(attempts: number("attempts"), failures: number("failures")), object.tag)
  }

  func write(_ notes: AttemptNotes, _ message: String) throws { _ = try put(notes, message, when: .always) }

  /// Returns whether the condition held.
  private func put(_ notes: AttemptNotes, _ message: String, when condition: PutCondition) throws -> Bool {
    // The ID makes the bytes unique: another worker may write the same numbers.
    let text = JSONValue.object([
      "format": .string("attempt-notes/1"), "attempts": .number(notes.attempts), "failures": .number(notes.failures),
      "write": .string("\(WorkerID())"),
    ]).line
    return try objects.putOwn(Self.key(message), Array((text + "\n").utf8), .json, when: condition) != nil
  }

  /// Takes back an attempt that was not the batch's fault. Another worker may have begun the next one by now.
  func takeBack(_ message: String) throws {
    for _ in 0..<Self.attempts {
      let known = try readTagged(message)
      // Without notes, the next delivery takes this attempt for the first.
      var notes = known?.notes ?? AttemptNotes()
      notes.attempts = max(0, notes.attempts - 1)
      if try put(notes, message, when: known.map { .matching($0.tag) } ?? .absent) { return }
    }
  }

  func remove(_ message: String) throws { try objects.delete(Self.key(message), nil) }
}
