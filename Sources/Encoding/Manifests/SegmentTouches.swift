// The pointer events of a segment in its manifest: {"width":390,"height":844,"events":[[0,"down",0,120.5,300]]}.

import FrameBatches
import JSON

/// The pointer events that belong to a segment.
package struct SegmentTouches: Sendable, Equatable {
  package struct Event: Sendable, Equatable {
    /// Milliseconds from the segment's start.
    package let offsetMs: Int64
    package let kind: PointerEvent.Kind
    package let pointer: Int32
    package let x: Double
    package let y: Double

    /// Returns the event of a longer segment that this one is a part of.
    ///
    /// - Parameter endMs: the event comes before it.
    package func moved(byMs moveMs: Int64, before endMs: Int64) -> Event {
      Event(offsetMs: min(offsetMs + moveMs, endMs - 1), kind: kind, pointer: pointer, x: x, y: y)
    }
  }

  /// The size of the picture in the unit of the coordinates.
  package let width: Double
  package let height: Double
  /// At least one, in the order of their times.
  package internal(set) var events: [Event]

  package init(width: Double, height: Double, events: [Event]) {
    (self.width, self.height, self.events) = (width, height, events)
  }

  package var json: JSONValue {
    .object([
      "width": .number(text(width)), "height": .number(text(height)),
      "events": .array(
        events.map {
          .array([
            .number($0.offsetMs), .string($0.kind.rawValue), .number($0.pointer), .number(text($0.x)),
            .number(text($0.y)),
          ])
        }),
    ])
  }

  /// Reads the member of a manifest.
  ///
  /// - Parameter durationMs: of the segment.
  package init(_ json: JSONValue, durationMs: Int64) throws(JSONError) {
    func side(_ key: String) throws(JSONError) -> Double {
      guard let value = json.object?[key]?.double.flatMap(PointerEvent.coordinate), value > 0 else {
        throw JSONError("\(key): not a size")
      }
      return value
    }
    (width, height) = (try side("width"), try side("height"))
    var beforeMs: Int64 = 0
    events = []
    for (index, entry) in try json.required("events", .array).enumerated() {
      guard let parts = entry.array, parts.count == 5, let offsetMs = parts[0].integer,
        (beforeMs..<durationMs).contains(offsetMs), let kind = parts[1].string.flatMap(PointerEvent.Kind.init),
        let pointer = parts[2].integer.flatMap({ Int32(exactly: $0) }), pointer >= 0,
        let x = parts[3].double.flatMap(PointerEvent.coordinate),
        let y = parts[4].double.flatMap(PointerEvent.coordinate)
      else { throw JSONError("event \(index) is not [milliseconds, kind, pointer, x, y], in order") }
      events.append(Event(offsetMs: offsetMs, kind: kind, pointer: pointer, x: x, y: y))
      beforeMs = offsetMs
    }
    guard !events.isEmpty else { throw JSONError("no events") }
  }

  /// Returns a number to a hundredth. Numbers of the size of coordinates are written without an exponent.
  private func text(_ value: Double) -> String {
    let text = "\(value)"
    return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
  }
}
