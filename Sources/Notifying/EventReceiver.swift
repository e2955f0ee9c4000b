import FileSystem
import FrameBatches

/// A receiver of events, for several threads at once.
package protocol EventReceiver: Sendable {
  /// The receiver's name in messages. It holds no secret.
  var name: String { get }
  /// Sends an event once, and waits for the answer.
  ///
  /// - Parameters:
  ///   - key: the event's idempotency key.
  ///   - event: one line of JSON.
  ///   - traceParent: the step of the trace that the request continues.
  ///   - cancellation: asked about once a second.
  func send(key: String, event: String, traceParent: TraceParent?, cancellation: Cancellation) -> Delivery
}

/// The result of one attempt to deliver an event.
package enum Delivery: Sendable, Equatable {
  case accepted
  /// The receiver does not want this event. A retry of the same event is pointless.
  case refused(cause: String)
  /// The receiver is away or busy.
  ///
  /// - Parameter retryAfterS: the seconds that it asks for.
  case failed(cause: String, retryAfterS: Int?)
  case cancelled
}
