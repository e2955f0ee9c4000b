import FileSystem
import Logging
import Notifying
import WorkQueues

/// The rules of a worker for batches.
package struct WorkerRules: Sendable {
  /// Whether published batches are kept.
  package var keepsBatches: Bool
  /// The timeout of a batch, in seconds.
  package var maxTimeS: Int
  /// The free space of the output's disk that a new batch needs.
  package var freeSpace: FreeSpace
  /// A session ends when nothing of it was published for that long, in milliseconds; nil if it ends on request only.
  package var endAfterMs: Int64?
  /// A screen is frozen when it has not changed for that long, in milliseconds; nil to look at no screen.
  package var frozenAfterMs: Int64?

  package init(
    keepsBatches: Bool = false, maxTimeS: Int = 3_600, freeSpace: FreeSpace = FreeSpace(), endAfterMs: Int64? = nil,
    frozenAfterMs: Int64? = nil
  ) {
    self.keepsBatches = keepsBatches
    self.maxTimeS = maxTimeS
    self.freeSpace = freeSpace
    self.endAfterMs = endAfterMs
    self.frozenAfterMs = frozenAfterMs
  }
}

/// The listeners of a worker: each learns what becomes of its batches.
package struct WorkerReports: Sendable {
  package var logger: Logger
  /// The counts before a restart.
  package var counters = WorkerCounters()
  package var metrics: (any WorkerMetrics)?
  /// Gets the event of each batch on an encoding thread, once or more, before the batch is retired.
  package var write: (@Sendable (any Event) -> Void)?
  /// Delivers the events to a receiver, if there is one.
  package var notifier: EventNotifier<EventSubject>?

  package init(to logger: Logger) { self.logger = logger }
}
