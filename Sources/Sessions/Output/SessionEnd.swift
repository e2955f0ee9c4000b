// The end of a session. Its record is written once: `session-end.json` beside the segments, or a member of the head in an object
// store. From then on the session is complete, and stays so: a batch that comes later is published, and reopens nothing.

import Encoding
import FileSystem
import FrameBatches
import JSON

/// The record that a session has ended.
package struct SessionEnd: Sendable, Equatable {
  /// Why a session has ended.
  package enum Cause: String, Sendable, CaseIterable {
    /// A batch was `final`.
    case final
    /// A person or a producer has asked for it.
    case request
    /// Nothing was published for some time, or a rule is about to remove the session.
    case quiet
  }

  package static let format = "session-end/1"
  /// Its file in the session's directory.
  package static let file = "session-end.json"
  /// Maximum size of its text in bytes.
  static let maximumBytes = 4 << 10
  /// Later than any end, in unix milliseconds.
  private static let latestMs: Int64 = 1 << 42

  package let session: SessionID
  package let cause: Cause
  /// When it was recorded, in unix milliseconds; for a final batch its end, so that the same input has the same record.
  package let endedMs: Int64

  package init(_ session: SessionID, _ cause: Cause, endedMs: Int64) {
    (self.session, self.cause, self.endedMs) = (session, cause, endedMs)
  }

  /// - Throws: `JSONError` for anything else.
  init(_ json: JSONValue, of session: SessionID) throws(JSONError) {
    guard try json.required("format", .string) == Self.format else { throw JSONError("format: another one") }
    guard try json.required("session", .string) == session.description else { throw JSONError("session: another one") }
    guard let cause = Cause(rawValue: try json.required("cause", .string)) else {
      throw JSONError("cause: another one")
    }
    self.init(session, cause, endedMs: try json.required("endedMs", in: 0...Self.latestMs))
  }

  var json: JSONValue {
    .object([
      "format": .string(Self.format), "session": .string(session.description), "cause": .string(cause.rawValue),
      "endedMs": .number(endedMs),
    ])
  }

  var bytes: [UInt8] { json.bytes() + [UInt8(ascii: "\n")] }
}

extension SessionDirectory {
  /// Returns the record of the session's end; nil if there is none.
  ///
  /// - Throws: ``DamagedOutput``.
  package func recordedEnd() throws -> SessionEnd? {
    let path = path + "/" + SessionEnd.file
    guard try DurableFile.isThere(path) else { return nil }
    guard let bytes = try DurableFile.contents(of: path, limit: SessionEnd.maximumBytes) else {
      throw DamagedOutput(path: path, cause: "not a readable file")
    }
    do {
      return try SessionEnd(JSONParser.parse(bytes), of: session)
    } catch {
      throw DamagedOutput(path: path, cause: "no record of an end: \(error)")
    }
  }
}
