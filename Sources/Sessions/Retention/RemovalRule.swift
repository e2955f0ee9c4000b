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
    // A segment without a manifest was removed meanwhile.
    try removes(startMs, publishedMs: session.publishedMs(startMs) ?? .min)
  }

  /// Whether it removes a segment.
  ///
  /// - Parameters:
  ///   - startMs: of the segment.
  ///   - publishedMs: when it was published, in unix milliseconds; nil if nobody knows. Then its age does not remove it.
  func removes(_ startMs: Int64, publishedMs: @autoclosure () throws -> Int64?) rethrows -> Bool {
    switch self {
    case .published(let byMs): try publishedMs().map { $0 <= byMs } ?? false
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
