// Pointer events in rrweb's incremental events (`data.source`): 1 mouse, 6 touch and 12 drag moves with
// `positions: [{x, y, timeOffset}]`; 2 interactions, of whose types 0 and 1 are a mouse's release and press, and 7 to 10 a touch's
// start, move, end and cancel. `pointerId` tells fingers apart (Sentry); other recorders have none.

import JSON

enum RRWebPointers {
  /// Maximum distance of a position from its event, in milliseconds. Recorders collect half a second of moves.
  private static let maximumOffsetMs = 3_600_000.0

  /// Whether an incremental event has positions of pointers.
  static func isSource(_ source: Int64?) -> Bool { [1, 2, 6, 12].contains(source) }

  /// Reads the `data` of an incremental event.
  ///
  /// - Parameters:
  ///   - timeMs: the event's instant.
  ///   - limit: of all events of the list.
  static func read(_ data: JSONValue, timeMs: Int64, into list: inout PointerEventList, limit: Int) {
    let pointer = Int32(exactly: data.object?["pointerId"]?.integer ?? 0) ?? 0
    guard data.object?["source"]?.integer != 2 else {
      guard let kind = kind(of: data.object?["type"]?.integer) else { return }
      return append(data, kind, pointer, timeMs, to: &list, limit)
    }
    let positions = data.object?["positions"]?.array ?? []
    guard list.events.count < limit else { return list.omit(PointerEventList.isFull, count: positions.count) }
    for position in positions {
      let offset = position.object?["timeOffset"].map { $0.double ?? .nan } ?? 0
      guard abs(offset) <= maximumOffsetMs else {
        list.omit("timeOffset: not a number of a reasonable size")
        continue
      }
      let (instant, overflows) = timeMs.addingReportingOverflow(Int64(offset.rounded()))
      append(position, .move, pointer, overflows ? -1 : instant, to: &list, limit)
    }
  }

  private static func append(
    _ point: JSONValue, _ kind: PointerEvent.Kind, _ pointer: Int32, _ timeMs: Int64, to list: inout PointerEventList,
    _ limit: Int
  ) {
    let (x, y) = (point.object?["x"]?.double ?? .nan, point.object?["y"]?.double ?? .nan)
    guard let event = PointerEvent(timeMs: timeMs, kind: kind, pointer: max(0, pointer), x: x, y: y, space: .pixels)
    else { return list.omit("x and y are not two numbers of a reasonable size") }
    list.append(event, limit: limit)
  }

  private static func kind(of type: Int64?) -> PointerEvent.Kind? {
    switch type {
    case 1, 7: .down
    case 8: .move
    case 0, 9: .up
    case 10: .cancel
    default: nil
    }
  }
}
