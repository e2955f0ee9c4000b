import Encoding

/// Which first segments are removed.
package enum RemovalRule: Sendable, Equatable {
  /// Those that ended by an instant, in unix milliseconds. The session goes as a whole if its last one did, and nothing was published
  /// in it since another instant, by file times.
  case ended(byMs: Int64, idleSinceMs: Int64)
  /// Those that start before an instant, in unix milliseconds. The session goes as a whole if its last one does, and the session is
  /// complete or nothing was published in it since another instant.
  case starting(beforeMs: Int64, idleSinceMs: Int64)

  func removes(_ segment: PublishedSegment) -> Bool {
    switch self {
    case .ended(let byMs, _): segment.endMs <= byMs
    case .starting(let beforeMs, _): segment.startMs < beforeMs
    }
  }

  /// Whether it removes no segment that starts then or later.
  package func spares(startMs: Int64) -> Bool {
    switch self {
    // A segment lasts a millisecond at least.
    case .ended(let ms, _), .starting(let ms, _): startMs >= ms
    }
  }

  var idleSinceMs: Int64 {
    switch self {
    case .ended(_, let idleSinceMs), .starting(_, let idleSinceMs): idleSinceMs
    }
  }

  var removesComplete: Bool { if case .starting = self { true } else { false } }
}
