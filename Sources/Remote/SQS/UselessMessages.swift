import Synchronization
import WorkQueues

/// Refuses messages without a batch, and warns of them.
final class UselessMessages: Sendable {
  private let queue: SQSActions
  private let place: ObjectPlace
  private let warn: @Sendable (String) -> Void
  private let hasWarned = Mutex(false)

  init(of queue: SQSActions, _ place: ObjectPlace, warn: @escaping @Sendable (String) -> Void) {
    (self.queue, self.place, self.warn) = (queue, place, warn)
  }

  /// Leaves a message to the queue's dead letters, or removes it if the queue has none.
  func refuse(_ message: SQSMessage, _ fault: String) throws {
    let hasDeadLetters = try queue.hasDeadLetters()
    if !hasDeadLetters { try queue.delete(message.receipt) }
    let outcome = hasDeadLetters ? "left to the queue's redrive policy" : "removed; a redrive policy would keep it"
    warn("the \(described(message)) \(fault): \(beginning(of: message)); it is \(outcome)")
  }

  /// Warns of the parts of a notification that are no batches.
  func note(_ batches: NotifiedBatches, of message: SQSMessage) {
    if batches.unreadable > 0 {
      let fault = "has \(batches.unreadable) records without a usable key"
      warn("the \(described(message)) \(fault): \(beginning(of: message))")
    }
    guard batches.others > 0 else { return }
    let isFirst = hasWarned.withLock { hasWarned in
      defer { hasWarned = true }
      return !hasWarned
    }
    if isFirst {
      warn(
        "the queue \(queue.address) gets notifications of objects that are no batches; filter them by the prefix \(place.prefix)incoming/"
      )
    }
  }

  private func described(_ message: SQSMessage) -> String {
    "queue \(queue.address): the message \(message.receipt.id)"
  }

  private func beginning(of message: SQSMessage) -> String { message.body.shortened(to: 200).oneLine }
}
