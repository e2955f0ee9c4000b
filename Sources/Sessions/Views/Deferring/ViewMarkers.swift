// A marker says that the views of a session lack segments. A worker writes it before it publishes the segments, and removes it
// once the views list them. So the next worker updates the views if this one dies.

import FrameBatches

/// The markers of a store.
protocol ViewMarkers {
  /// Marks a session, durably.
  ///
  /// - Parameter known: the marker that this process wrote, if it still needs one.
  func add(_ session: SessionID, known: ViewMarker?) throws -> ViewMarker

  /// Removes a marker, but not one that another process wrote over it.
  func remove(_ marker: ViewMarker) throws

  /// Returns the markers of dead processes, by their age; none if the store does not answer.
  ///
  /// - Parameters:
  ///   - all: whether to return those of live processes, too.
  ///   - sessions: to leave out.
  func abandoned(all: Bool, except sessions: Set<SessionID>) -> [ViewMarker]

  /// Removes the directory of markers if it is empty.
  func tidyUp()
}

/// A marker that was written.
struct ViewMarker: Sendable, Equatable {
  let session: SessionID
  /// The tag of its object; nil in a directory, where the session's lock protects it.
  var tag: ObjectTag?
}
