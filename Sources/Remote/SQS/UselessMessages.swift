import FileSystem
import Synchronization
import WorkQueues

/// Refuses messages without a batch, and warns of at most 60 a minute: a queue cannot fill the log.
final class UselessMessages: Sendable {
  private struct Minute {
    var endMs = Int.min
    var warnings = 0
    /// Warnings that were left out since the last one.
    var unsaid = 0
  }

  private static let warningsInAMinute = 60

  private let queue: SQSActions
  private let place: ObjectPlace
  private let report: @Sendable (String) -> Void
  private let clock: @Sendable () -> Int
  private let hasWarned = Mutex(false)
  private let minute = Mutex(Minute())

  /// - Parameters:
  ///   - clock: a monotonic clock, in milliseconds.
  ///   - warn: called with a line for the log.
  init(
    of queue: SQSActions, _ place: ObjectPlace, clock: @escaping @Sendable () -> Int,
    warn: @escaping @Sendable (String) -> Void
  ) {
    (self.queue, self.place, self.clock, report) = (queue, place, clock, warn)
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

  private func warn(_ line: String) {
    let now = clock()
    let unsaid = minute.withLock { minute -> Int? in
      if now >= minute.endMs { minute = Minute(endMs: now + 60_000, unsaid: minute.unsaid) }
      guard minute.warnings < Self.warningsInAMinute else {
        minute.unsaid += 1
        return nil
      }
      minute.warnings += 1
      defer { minute.unsaid = 0 }
      return minute.unsaid
    }
    if let unsaid { report(line + (unsaid > 0 ? "; \(unsaid) more warnings of its messages are left out" : "")) }
  }

  private func described(_ message: SQSMessage) -> String {
    "queue \(queue.address): the message \(message.receipt.id)"
  }

  private func beginning(of message: SQSMessage) -> String { message.body.shortened(to: 200).oneLine }
}
