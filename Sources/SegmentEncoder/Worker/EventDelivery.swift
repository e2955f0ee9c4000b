import Notifying

/// The places that get the events of batches.
package struct EventDelivery: Sendable {
  /// Called on an encoding thread, once or more for each batch, before the batch is retired.
  let write: (@Sendable (BatchEvent) -> Void)?
  package let notifier: EventNotifier<FinishedBatch>?

  package init(write: (@Sendable (BatchEvent) -> Void)?, notifier: EventNotifier<FinishedBatch>?) {
    self.write = write
    self.notifier = notifier
  }
}
