// `events` of `batch.json`: [{"timeMs":1767859512340,"type":"down","x":120.5,"y":300,"pointer":0}].

import JSON

enum NativePointers {
  /// Reads all events. Those that cannot be used are left out.
  static func read(_ json: JSONValue, _ units: NativeUnits) -> PointerEventList {
    var list = PointerEventList()
    guard let events = json.object?["events"], events != .null else { return list }
    guard let events = events.array else {
      list.omit("events is not a list")
      return list
    }
    for (index, entry) in events.enumerated() {
      do throws(JSONError) {
        list.append(try event(entry, units), limit: units.limits.touches)
      } catch {
        list.omit("events[\(index)]: \(error)")
      }
    }
    return list
  }

  private static func event(_ entry: JSONValue, _ units: NativeUnits) throws(JSONError) -> PointerEvent {
    guard let scale = units.scale else { throw JSONError(NativeUnits.scaleRule) }
    let word = try entry.required("type", .string)
    guard let kind = PointerEvent.Kind(rawValue: word) else {
      throw JSONError("type: not one of \(PointerEvent.Kind.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    let pointer = try entry.optional("pointer", .integer) ?? 0
    guard let pointer = Int32(exactly: pointer), pointer >= 0 else {
      throw JSONError("pointer: not a number from 0 to \(Int32.max)")
    }
    if let key = NativeKeys.unknown(inEvent: entry).first(where: \.mayHide) {
      throw JSONError("\(key.place) is not known, and may have been meant to hide it")
    }
    let timeMs = try entry.required("timeMs", .integer)
    let (x, y) = (entry.object?["x"]?.double ?? .nan, entry.object?["y"]?.double ?? .nan)
    guard
      let event = PointerEvent(timeMs: timeMs, kind: kind, pointer: pointer, x: x, y: y, space: .picture(scale: scale))
    else { throw JSONError("x and y are not two numbers of a reasonable size") }
    return event
  }
}
