import FileSystem
import FrameBatches
import JSON

/// A request to end a session once all that was handed in before is published. It stays until a worker has recorded and announced the end.
package struct EndRequest: Sendable, Equatable {
  private static let format = "session-end-request/1"
  /// Maximum number of ``awaited`` batches.
  package static let maximumAwaited = 10_000
  /// Maximum size of its text in bytes: a byte of a name may become six.
  static let maximumBytes = maximumAwaited * 6 * 256

  package let session: SessionID
  package let cause: SessionEnd.Cause
  /// Unix milliseconds.
  package let requestedMs: Int64
  /// Batches that it awaits.
  package let awaited: [String]
  /// Whether it awaits all batches that were handed in before, and those of pictures that were in no batch yet. No list of them is
  /// kept: a process awaits what is in the queue when it first sees the request.
  package let awaitsAll: Bool

  package init(
    _ session: SessionID, _ cause: SessionEnd.Cause, awaiting: [String] = [], awaitsAll: Bool = false,
    requestedMs: Int64 = WallClock.nowMs
  ) {
    (self.session, self.cause, self.requestedMs, self.awaitsAll) = (session, cause, requestedMs, awaitsAll)
    awaited = Array(awaiting.suffix(Self.maximumAwaited))
  }

  /// - Throws: `JSONError` for anything else.
  init(_ json: JSONValue, of session: SessionID) throws(JSONError) {
    guard try json.required("format", .string) == Self.format else { throw JSONError("format: another one") }
    guard let cause = SessionEnd.Cause(rawValue: try json.required("cause", .string)) else {
      throw JSONError("cause: another one")
    }
    self.init(
      session, cause, awaiting: try json.required("awaited", .array).compactMap(\.string),
      awaitsAll: json.object?["closing"]?.bool ?? false, requestedMs: try json.required("requestedMs", .integer))
  }

  var bytes: [UInt8] {
    var members: [String: JSONValue] = [
      "format": .string(Self.format), "session": .string(session.description), "cause": .string(cause.rawValue),
      "requestedMs": .number(requestedMs), "awaited": .array(awaited.map { .string($0) }),
    ]
    if awaitsAll { members["closing"] = .bool(true) }
    return JSONValue.object(members).bytes() + [UInt8(ascii: "\n")]
  }
}

/// A request that this process has taken: no other one performs it meanwhile.
package struct HeldEndRequest: Sendable {
  enum Hold: Sendable {
    /// A locked file. The lock goes with the process.
    case file(OpenFile)
    /// An object that names this process, for some minutes.
    case object(ObjectTag)
  }

  package let request: EndRequest
  let hold: Hold
}

/// The outcome of a request for an end.
package enum EndRequestOutcome: Sendable, Equatable {
  case requested
  /// It has ended already.
  case alreadyEnded(SessionEnd)
}

/// The state of a session that is to end, as its sender is told.
package enum EndState: String, Sendable {
  /// Its end is recorded.
  case ended
  /// It ends after all that was handed in before.
  case ending
  /// Nothing of it is published, and no batch waits that may be of it. It ends after its first batch, if one comes.
  case unknown
}
