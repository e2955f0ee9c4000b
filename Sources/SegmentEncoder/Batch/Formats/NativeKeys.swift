// The keys of `batch.json` that mean something. Others are reported; where one may have been meant to hide something, what
// it stands at is hidden.

enum NativeKeys {
  private static let batch: Set = [
    "version", "session", "intervalMs", "endMs", "final", "capture", "frames", "metadata", "scale", "maskColor",
  ]
  private static let frame: Set = ["file", "timeMs", "masks", "pixels", "layers", "width", "height"]
  private static let layer: Set = ["file", "x", "y", "width", "height", "z", "opacity", "masks", "pixels"]
  private static let mask: Set = ["x", "y", "width", "height", "color"]
  private static let pixels: Set = ["format", "width", "height", "bytesPerRow", "alphaBytesPerRow", "alpha"]

  /// Unknown keys of the batch as a whole.
  static func unknown(inBatch json: JSONValue) -> [UnknownKey] { unknown(json, batch, "") }

  /// Unknown keys of an entry of `frames`, and of all that is in it.
  static func unknown(inFrame json: JSONValue, _ place: String) -> [UnknownKey] {
    let layers = (json.object?["layers"]?.array ?? []).enumerated().flatMap { index, member in
      let place = "\(place)layers[\(index)]."
      return unknown(member, layer, place) + inside(member, place)
    }
    return unknown(json, frame, place) + inside(json, place) + layers
  }

  /// Of masks and pixels.
  private static func inside(_ json: JSONValue, _ place: String) -> [UnknownKey] {
    let masks = (json.object?["masks"]?.array ?? []).enumerated().flatMap { index, member in
      unknown(member, mask, "\(place)masks[\(index)].")
    }
    return masks + (json.object?["pixels"].map { unknown($0, pixels, place + "pixels.") } ?? [])
  }

  private static func unknown(_ json: JSONValue, _ known: Set<String>, _ place: String) -> [UnknownKey] {
    (json.object ?? [:]).filter { !known.contains($0.key) }.sorted { $0.key < $1.key }.map { key, value in
      UnknownKey(place: place + key.shortened(to: 60), mayHide: UnknownKey.mayHide(key, value))
    }
  }
}

/// A key that nobody reads.
struct UnknownKey {
  /// Where it stands.
  let place: String
  /// Whether somebody may have meant to hide something with it.
  let mayHide: Bool

  var blackout: String { "\(place) is no key that is known" }

  private static let words = ["mask", "redact", "hide", "hidden", "blur", "private", "privacy", "scale"]

  /// A word of hiding in the key, or in any key of its value.
  fileprivate static func mayHide(_ key: String, _ value: JSONValue) -> Bool {
    let lower = key.lowercased()
    if words.contains(where: lower.contains) { return true }
    return (value.object ?? [:]).contains { mayHide($0.key, $0.value) }
      || (value.array ?? []).contains { mayHide("", $0) }
  }

  /// What a person should know; the same key of many frames is told of once.
  static func warnings(of keys: [UnknownKey]) -> [String] {
    var seen: Set<String> = []
    let first = keys.filter { seen.insert(String($0.place.filter { !$0.isNumber })).inserted }
    return first.prefix(10).map { key in
      "batch.json: \(key.place) is no key that is known"
        + (key.mayHide
          ? "; it may have been meant to hide something, so everything there is black" : ", and is ignored")
    }
  }
}
