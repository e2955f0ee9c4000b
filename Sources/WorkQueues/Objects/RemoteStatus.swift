import FrameBatches
import JSON
import Notifying
import Sessions

/// The names in a queue, as far as the queue tells it. The question changes nothing in the queue.
package struct NameQueueStatus: Sendable, Equatable {
  /// The names that no worker has claimed, and the time since the oldest was added.
  package let waiting: QueueDepth
  /// The names that workers have claimed, and the time since the oldest was added.
  package let claimed: QueueDepth
  /// Whether the counts lag behind, and may be wrong for a while.
  package let isApproximate: Bool

  package init(waiting: QueueDepth, claimed: QueueDepth, isApproximate: Bool) {
    (self.waiting, self.claimed, self.isApproximate) = (waiting, claimed, isApproximate)
  }
}

/// The state of a queue of names and of its object store. Reading it changes nothing.
package struct RemoteStatus: Sendable {
  package let queue: String
  package let store: String
  package let names: NameQueueStatus
  /// The batches in `incoming/`: each lies there until it is finished.
  package let owed: QueueDepth
  package let quarantined: QueueDepth
  /// The sessions that are to end.
  package let ending: QueueDepth
  /// The sessions that may go on, if workers note them.
  package let open: QueueDepth
  package let refusedEvents: QueueDepth

  /// Maximum number of lists for each count: 20 000 objects of Amazon's store.
  private static let lists = 20

  /// - Parameters:
  ///   - queue: the queue's name in messages.
  ///   - store: the store's name in messages.
  /// - Throws: ``Failure`` for a list out of order; an error of the store.
  package init(_ names: NameQueueStatus, of queue: String, _ objects: any ObjectClient, name store: String) throws {
    (self.names, self.queue, self.store) = (names, queue, store)
    let sessions = StoredSessions(objects, name: store)
    func depth(_ prefix: String, where isCounted: (Substring) -> Bool) throws -> QueueDepth {
      QueueDepth(try sessions.count(below: prefix, lists: Self.lists, where: isCounted))
    }
    owed = try depth(ObjectBatchRepository.incoming) { ObjectBatchRepository.isBatch(String($0)) }
    quarantined = try depth(ObjectQuarantine.prefix) { ObjectQuarantine.isBatch($0) }
    ending = QueueDepth(try sessions.count(.ending, lists: Self.lists))
    open = QueueDepth(try sessions.count(.open, lists: Self.lists))
    refusedEvents = try depth(RefusedNotifications.prefix) { $0.hasSuffix(".json") }
  }

  /// One line of JSON for a program.
  package func json(_ growth: OutputGrowth) -> String {
    JSONValue.object([
      "queue": .string(queue), "store": .string(store), "waiting": names.waiting.json, "claimed": names.claimed.json,
      "isApproximate": .bool(names.isApproximate), "owed": owed.json, "quarantined": quarantined.json,
      "ending": ending.json, "open": open.json, "refusedEvents": refusedEvents.json,
      "bytesADay": growth.bytesADay.map { .number($0) } ?? .null,
      "objectsADay": growth.objectsADay.map { .number($0) } ?? .null, "bytesAreEstimated": .bool(growth.isEstimate),
    ]).line
  }
}
