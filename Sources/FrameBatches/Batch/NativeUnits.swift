import JSON

/// The units and limits of all frames of a `batch.json`.
package struct NativeUnits {
  /// Pixels per unit of a rectangle; nil if `scale` is invalid.
  package let scale: Double?
  /// The colour of masks without a colour.
  let maskColour: JSONValue?
  package let limits: Limits

  static let scaleRule = "scale is not a number above 0, up to 16"

  init(_ json: JSONValue, limits: Limits) {
    let scale = json.object?["scale"].map { $0.double ?? .nan } ?? 1
    self.scale = scale > 0 && scale <= 16 ? scale : nil
    maskColour = json.object?["maskColor"]
    self.limits = limits
  }

  package func masks(of entry: JSONValue) -> Masks {
    entry.object?["masks"].map { Masks($0, in: self) } ?? .none
  }

  /// Returns a length or position in pixels, not rounded.
  package func pixels(_ entry: JSONValue, _ key: String, default absent: Double? = nil) throws(JSONError) -> Double {
    guard let scale else { throw JSONError(Self.scaleRule) }
    guard let said = entry.object?[key], said != .null else {
      if let absent { return absent }
      throw JSONError("no \"\(key)\"")
    }
    // The limit is far beyond any picture, and below any overflow.
    guard let value = said.double, value.isFinite, abs(value * scale) <= 1_000_000 else {
      throw JSONError("\(key): not a number of a reasonable size")
    }
    return value * scale
  }
}
