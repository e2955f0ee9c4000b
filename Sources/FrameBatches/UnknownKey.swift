import FileSystem
import JSON

/// A key that is not known.
struct UnknownKey {
  /// Returns the keys of an object that are none of those known.
  ///
  /// - Parameter place: of the object, with a point behind it.
  static func all(in json: JSONValue, besides known: Set<String>, _ place: String = "") -> [UnknownKey] {
    (json.object ?? [:]).filter { !known.contains($0.key) }.sorted { $0.key < $1.key }.map { key, value in
      UnknownKey(place: place + key.shortened(to: 60), mayHide: mayHide(key, value))
    }
  }

  /// The path of the key in `batch.json`.
  package let place: String
  /// Whether the producer may have meant it to hide something.
  let mayHide: Bool

  /// The reason why the frame is hidden. It has the same words for each frame, so that manifests list it once.
  package var blackout: String { "the key \(place.split(separator: ".").last ?? "") is not known" }

  private static let words: Set = [
    "mask", "masks", "masked", "masking", "redact", "redacted", "redaction", "redactions", "hide", "hidden", "blur",
    "blurred", "blurs", "private", "privacy", "sensitive", "scale",
  ]

  /// Whether the key contains a word for hiding, or its value a rectangle.
  private static func mayHide(_ key: String, _ value: JSONValue) -> Bool {
    !words.isDisjoint(with: parts(of: key)) || hasRectangle(value)
  }

  private static func hasRectangle(_ value: JSONValue) -> Bool {
    if let members = value.object {
      let keys = Set(members.keys.map { $0.lowercased() })
      let isRectangle =
        (keys.contains("x") || keys.contains("left"))
        && !keys.isDisjoint(with: ["width", "w", "right"])
      return isRectangle || members.contains { mayHide($0.key, $0.value) }
    }
    return (value.array ?? []).contains(where: hasRectangle)
  }

  /// Splits a key into its words: `maskColour` and `mask_colour` give mask and colour.
  private static func parts(of key: String) -> [String] {
    var parts: [String] = [""]
    for character in key {
      if !character.isLetter {
        parts.append("")
      } else if character.isUppercase, parts[parts.count - 1].last?.isLowercase == true {
        parts.append(String(character))
      } else {
        parts[parts.count - 1].append(character)
      }
    }
    return parts.map { $0.lowercased() }
  }

  /// Returns warnings for the operator, each key once.
  package static func warnings(of keys: [UnknownKey]) -> [String] {
    var seen: Set<String> = []
    let first = keys.filter { seen.insert(String($0.place.filter { !$0.isNumber })).inserted }
    let told = first.prefix(20).map { key in
      "batch.json: \(key.place) is not known"
        + (key.mayHide ? "; it may have been meant to hide something, so the frame is black" : ", and is ignored")
    }
    return told + (first.count > 20 ? ["batch.json: and \(first.count - 20) more keys that are not known"] : [])
  }
}
