/// The pointer events of a batch, in order, before they are put on the timeline.
package struct PointerTrack: Sendable, Equatable {
  /// Maximum number of moves in a second, of all pointers together. More than any screen reports of one finger.
  package static let movesPerSecond = 200
  /// Maximum number of other events in a second.
  package static let pressesPerSecond = 50

  package static let none = PointerTrack()

  package private(set) var events: [PointerEvent] = []
  /// The captures of frames whose masks could not be read. No events are kept from there up to the next frame.
  package private(set) var blindMs: [Int64] = []

  private init() {}

  /// Sorts events by time, and leaves out those beyond the limits.
  ///
  /// - Parameter blindMs: see ``blindMs``.
  init(_ list: inout PointerEventList, blindMs: [Int64], limits: Limits) {
    guard !list.events.isEmpty else { return }
    let order = list.events.indices.sorted { (list.events[$0].timeMs, $0) < (list.events[$1].timeMs, $1) }
    var (second, moves, presses) = (Int64.min, 0, 0)
    for index in order {
      let event = list.events[index]
      guard limits.instants.contains(event.timeMs) else {
        list.omit("instant \(event.timeMs) lies outside 2001 to 2100")
        continue
      }
      if event.timeMs / 1_000 != second { (second, moves, presses) = (event.timeMs / 1_000, 0, 0) }
      if event.kind == .move { moves += 1 } else { presses += 1 }
      guard moves <= Self.movesPerSecond || event.kind != .move else {
        list.omit("more than \(Self.movesPerSecond) moves in a second")
        continue
      }
      guard presses <= Self.pressesPerSecond || event.kind == .move else {
        list.omit("more than \(Self.pressesPerSecond) presses and releases in a second")
        continue
      }
      events.append(event)
    }
    if !events.isEmpty { self.blindMs = blindMs.sorted() }
  }

  /// The track as a text for the batch's digest; empty for a batch without events.
  var canonicalText: String {
    guard !events.isEmpty else { return "" }
    let blind = blindMs.map { " \($0)" }.joined()
    return "pointers \(events.count)\(blind)\n" + events.map { $0.canonicalText + "\n" }.joined()
  }
}
