import Encoding
import FileSystem

/// Which first segments are removed.
package enum RemovalRule: Sendable, Equatable {
  /// Those that were published by an instant, in unix milliseconds: the clock of a device may be wrong. The session goes as a whole if
  /// nothing was published in it since.
  case published(byMs: Int64)
  /// Those that start before an instant, in unix milliseconds. The session goes as a whole if its last one does, and the session is
  /// complete or nothing was published in it since another instant.
  case starting(beforeMs: Int64, idleSinceMs: Int64)

  /// Whether it removes a segment of a session.
  ///
  /// - Parameter startMs: of the segment.
  func removes(_ startMs: Int64, of session: SessionDirectory) throws -> Bool {
    switch self {
    // A segment without a manifest was removed meanwhile.
    case .published(let byMs): try session.publishedMs(startMs).map { $0 <= byMs } ?? true
    case .starting(let beforeMs, _): startMs < beforeMs
    }
  }

  /// The session goes on if something was published since then, in unix milliseconds.
  var idleSinceMs: Int64 {
    switch self {
    case .published(let byMs): byMs + 1
    case .starting(_, let idleSinceMs): idleSinceMs
    }
  }

  var removesComplete: Bool { if case .starting = self { true } else { false } }
}
