/// The pointer events that a format found, up to a limit, and the number of those that it left out.
package struct PointerEventList: Sendable {
  static let isFull = "beyond the limit of a batch"

  package private(set) var events: [PointerEvent] = []
  /// The number of events that are left out, and the reason of the first.
  private var omitted = 0
  private var reason = ""

  package init() {}

  var isEmpty: Bool { events.isEmpty && omitted == 0 }

  /// - Parameter limit: events beyond it are counted only.
  mutating func append(_ event: PointerEvent, limit: Int) {
    guard events.count < limit else { return omit(Self.isFull) }
    events.append(event)
  }

  mutating func omit(_ reason: String, count: Int = 1) {
    guard count > 0 else { return }
    if omitted == 0 { self.reason = reason }
    omitted += count
  }

  /// Appends the events of another list.
  mutating func add(_ other: PointerEventList, in space: PointerSpace) {
    events += other.events.compactMap { $0.located(in: space) }
    omit(other.reason, count: other.omitted)
  }

  /// Gives all events other times.
  mutating func move(_ time: (Int64) -> Int64) { events = events.compactMap { $0.at(time($0.timeMs)) } }

  mutating func omitAll(_ reason: String) {
    omit(reason, count: events.count)
    events = []
  }

  /// Tells the operator of events that are left out; nil if none is.
  var warning: String? {
    guard omitted > 0 else { return nil }
    return omitted == 1
      ? "1 pointer event is left out: \(reason)"
      : "\(omitted) pointer events are left out; the first one: \(reason)"
  }
}
