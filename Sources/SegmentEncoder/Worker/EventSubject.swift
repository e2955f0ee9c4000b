import FrameBatches
import Sessions

/// The subject of an event.
package enum EventSubject: Sendable {
  /// A batch, which stays claimed until its event is delivered.
  case batch(FinishedBatch)
  /// The end of a session, whose request stays until its event is delivered.
  case end(HeldEndRequest)
  /// A session that is in the store, and stays here until its event is delivered.
  case upload(SessionID)
  /// Files that were made of a session, or a frozen screen. Nothing waits for the event.
  case notice
}
