import JSON
import Sessions

/// The batches in one state, or other things that wait.
package struct QueueDepth: Sendable, Equatable {
  package let count: Int
  /// Milliseconds for which the oldest has been in this state; nil if there is none, or it is not known.
  package let oldestMs: Int64?
  /// Whether there may be more than were counted.
  package let isPartial: Bool

  package init(count: Int, oldestMs: Int64?, isPartial: Bool = false) {
    (self.count, self.oldestMs, self.isPartial) = (count, oldestMs, isPartial)
  }

  /// The objects of a store.
  init(_ objects: ObjectCount) {
    self.init(
      count: objects.count, oldestMs: objects.oldestS.map { Int64($0) * 1_000 }, isPartial: objects.isPartial)
  }

  package var json: JSONValue {
    var members: [String: JSONValue] = [
      "count": .number(count), "oldestMs": oldestMs.map(JSONValue.number) ?? .null,
    ]
    if isPartial { members["atLeast"] = .bool(true) }
    return .object(members)
  }
}
