// Sessions that end, in a store. A request for an end is durable, so that a worker records and announces the end, whichever process dies.

import FileSystem
import FrameBatches

/// A store whose sessions end.
package protocol EndingStore: Sendable {
  /// Notes that a session is to end, durably.
  func requestEnd(_ request: EndRequest) throws -> EndRequestOutcome
  /// Whether anything of a session is published.
  func knows(_ session: SessionID) throws -> Bool
  /// Returns the sessions with a request.
  func endRequests() throws -> [SessionID]
  /// Takes a request, so that no other process performs it.
  ///
  /// - Parameter waits: whether a request cannot be performed yet. It is not taken then: in an object store no other process could
  ///   take it for some minutes.
  /// - Returns: nil if it is gone or waits, or another process has it.
  func takeEndRequest(of session: SessionID, unless waits: (EndRequest) throws -> Bool) throws -> HeldEndRequest?
  /// Removes a request that was taken. A newer one stays.
  func removeEndRequest(_ held: HeldEndRequest) throws
  /// Milliseconds between two looks at the requests of other processes.
  var endScanMs: Int { get }
  /// Records the end of a session, and brings its views up to date. An earlier record stays.
  ///
  /// - Parameter quietMs: nothing was published for that long, or the session goes on; nil to end it anyway.
  /// - Throws: ``SessionDeleted``; ``Cancelled``.
  func end(
    _ session: SessionID, _ cause: SessionEnd.Cause, ifQuietForMs quietMs: Int64?, cancellation: Cancellation
  ) throws -> EndOutcome
  /// Returns the sessions that have not ended, and of which nothing was published for some time.
  func quietSessions(forMs quietMs: Int64) throws -> [SessionID]
}

extension EndingStore {
  /// Reads a request without taking it.
  ///
  /// - Returns: nil if it is gone, or another process has it.
  package func endRequest(of session: SessionID) throws -> EndRequest? {
    var found: EndRequest?
    _ = try takeEndRequest(of: session) { request in
      found = request
      return true
    }
    return found
  }

  /// Takes a request, even one that waits for batches.
  package func takeEndRequest(of session: SessionID) throws -> HeldEndRequest? {
    try takeEndRequest(of: session) { _ in false }
  }
}

package enum EndOutcome: Sendable, Equatable {
  case ended(EndedSession)
  /// Something was published a moment ago.
  case goesOn
  /// Nothing of the session is published.
  case unknown
}
