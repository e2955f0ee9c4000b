/// The session that the batches of a stream continue.
package struct OpenSession: Sendable, Equatable {
  package let name: String
  /// The last capture in its batches.
  package let lastMs: Int64
  package let endMs: Int64
  package let intervalMs: Int64
  /// Whether the end is a guess: a later picture may follow at any instant after the last one.
  package let isOpen: Bool

  package init(name: String, lastMs: Int64, endMs: Int64, intervalMs: Int64, isOpen: Bool = false) {
    (self.name, self.lastMs, self.endMs) = (name, lastMs, endMs)
    (self.intervalMs, self.isOpen) = (intervalMs, isOpen)
  }

  /// Whether a capture lies in the time of the batches. A small distance from their end is a seam.
  func covers(_ timeMs: Int64) -> Bool {
    timeMs <= lastMs || !isOpen && 2 * (endMs - timeMs) >= intervalMs
  }

  /// The session after its next batch, which may have late pictures.
  func continued(by next: OpenSession) -> OpenSession {
    if next.lastMs <= lastMs { return self }
    // A late picture may lie in the hold of the last one: the batches still take that time.
    guard next.isOpen, !isOpen, next.lastMs < endMs else { return next }
    return OpenSession(name: name, lastMs: next.lastMs, endMs: endMs, intervalMs: intervalMs)
  }
}

/// The names of the sessions that the pictures of a stream belong to.
package protocol SessionNames {
  /// Whether the name of a session does not depend on its first capture: it goes on after a pause.
  var areFixed: Bool { get }
  /// Whether a pause is the end of a session.
  var endAtPause: Bool { get }
  /// The name of the session that begins with a capture.
  func name(at timeMs: Int64) -> String
  /// Whether a clock ends the session of a capture before a later one.
  func isOver(_ beforeMs: Int64, at afterMs: Int64) -> Bool
  /// Whether a session of an earlier run goes on: that run may have been given another name.
  func mayContinue(_ session: OpenSession) -> Bool
}

/// The one session of a stream whose sender names it.
package struct OneSession: SessionNames {
  private let name: String

  package init(_ name: String) { self.name = name }

  package var areFixed: Bool { true }
  package var endAtPause: Bool { false }
  package func name(at timeMs: Int64) -> String { name }
  package func isOver(_ beforeMs: Int64, at afterMs: Int64) -> Bool { false }
  package func mayContinue(_ session: OpenSession) -> Bool { session.name == name }
}
