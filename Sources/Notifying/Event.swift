import FrameBatches
import Logging

/// A fact that a worker tells the next step of a pipeline, as JSON.
package protocol Event: Sendable {
  /// The idempotency key: the same for each event of the same fact, also after a crash.
  var key: String { get }
  /// The event in one line of JSON.
  var line: String { get }
  /// The step of a trace that the receiver's request continues: the worker's own, or else the producer's; nil without one.
  var traceParent: TraceParent? { get }
  /// Its subject, for the log.
  var about: Logger.Metadata { get }
}
