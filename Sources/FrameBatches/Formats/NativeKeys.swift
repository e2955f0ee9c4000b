// The known keys of `batch.json`. Other keys give a warning. If such a key may be meant to hide something, its frame is hidden, or
// the batch is refused.

import JSON

enum NativeKeys {
  private static let batch: Set = [
    "version", "session", "intervalMs", "endMs", "endIsOpen", "clockOffsetMs", "final", "capture", "frames", "metadata",
    "scale",
    "maskColor",
    "nameTime", "times", "start", "fps", "timeZone", "events", "grows", "labels", TraceParent.key,
  ]
  private static let frame: Set = ["file", "timeMs", "masks", "pixels"]
  private static let layered: Set = ["timeMs", "masks", "layers", "width", "height"]
  private static let layer: Set = ["file", "x", "y", "width", "height", "z", "opacity", "masks", "pixels"]
  private static let mask: Set = ["x", "y", "width", "height", "color"]
  private static let event: Set = ["timeMs", "type", "x", "y", "pointer"]
  private static let pixels: Set = ["format", "width", "height", "bytesPerRow", "alphaBytesPerRow", "alpha"]

  /// Returns the unknown keys of the batch as a whole.
  package static func unknown(inBatch json: JSONValue) -> [UnknownKey] { UnknownKey.all(in: json, besides: batch) }

  /// Returns the unknown keys of an entry of `frames`, and of all its members.
  package static func unknown(inFrame json: JSONValue, _ place: String) -> [UnknownKey] {
    let layers = (json.object?["layers"]?.array ?? []).enumerated().flatMap { index, member in
      let place = "\(place)layers[\(index)]."
      return UnknownKey.all(in: member, besides: layer, place) + inside(member, place)
    }
    return UnknownKey.all(
      in: json, besides: json.object?["layers"]?.array == nil ? frame.union(["layers"]) : layered, place)
      + inside(json, place) + layers
  }

  /// Returns the unknown keys of an entry of `events`.
  package static func unknown(inEvent json: JSONValue) -> [UnknownKey] { UnknownKey.all(in: json, besides: event) }

  /// Returns the unknown keys of masks and pixels.
  private static func inside(_ json: JSONValue, _ place: String) -> [UnknownKey] {
    let masks = (json.object?["masks"]?.array ?? []).enumerated().flatMap { index, member in
      UnknownKey.all(in: member, besides: mask, "\(place)masks[\(index)].")
    }
    return masks + (json.object?["pixels"].map { UnknownKey.all(in: $0, besides: pixels, place + "pixels.") } ?? [])
  }
}
