// The record that a session was deleted. From then on nothing of the session is published. It has no content of the session.

import FileSystem
import FrameBatches
import ISOMedia
import JSON

/// The record that a session was deleted.
package struct Tombstone: Sendable, Equatable {
  package static let format = "session-tombstone/1"
  /// Maximum size of a reason, in bytes of UTF-8.
  package static let maximumReasonBytes = 1_000
  /// Maximum size of a tombstone, in bytes: a byte of the reason may become six.
  static let maximumBytes = 16 << 10
  /// Later than any deletion, in unix milliseconds.
  private static let latestMs: Int64 = 1 << 42

  package let session: SessionID
  package let deletedAtMs: Int64
  /// The operator's words; may be empty.
  package let reason: String

  package init(_ session: SessionID, deletedAtMs: Int64, reason: String) {
    self.session = session
    self.deletedAtMs = deletedAtMs
    self.reason = reason.shortened(to: Self.maximumReasonBytes)
  }

  /// Reads a tombstone.
  ///
  /// - Throws: `JSONError` for anything else.
  init(_ json: JSONValue, of session: SessionID) throws(JSONError) {
    guard try json.required("format", .string) == Self.format else { throw JSONError("format: another one") }
    guard try json.required("session", .string) == session.description else { throw JSONError("session: another one") }
    let deletedAtMs = try json.required("deletedAtMs", in: 0...Self.latestMs)
    self.init(session, deletedAtMs: deletedAtMs, reason: try json.optional("reason", .string) ?? "")
  }

  package var members: [String: JSONValue] {
    [
      "session": .string(session.description), "deletedAtMs": .number(deletedAtMs), "reason": .string(reason),
    ]
  }

  /// Its text, as it is stored.
  var bytes: [UInt8] {
    JSONValue.object(members.merging(["format": .string(Self.format)]) { $1 }).bytes() + [UInt8(ascii: "\n")]
  }
}

/// The session of a batch was deleted: nothing of it is published.
package struct SessionDeleted: ClassifiedError, Equatable {
  package var kind: Failure.Kind { .gone }
  package let tombstone: Tombstone

  package init(_ tombstone: Tombstone) { self.tombstone = tombstone }

  package var description: String { "\(what); `delete --undelete` allows it again" }

  /// The description without advice.
  package var what: String { "session \(tombstone.session) was deleted at \(tombstone.deletedAtMs.dateText)" }
}
