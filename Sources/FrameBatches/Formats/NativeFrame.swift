// An entry of `frames` in `batch.json`: an image file, a file of raw pixels, or several layers of both kinds.

import JSON

/// The files of an entry, and their composition.
struct NativeFrame {
  package let files: [String]
  package let look: FrameComposition

  /// - Parameter unknown: an unknown key that may be meant to hide a part of the frame.
  init(_ entry: JSONValue, _ units: NativeUnits, hiddenBy unknown: UnknownKey?) throws(JSONError) {
    let masks = unknown.map { .everything(because: $0.blackout) } ?? units.masks(of: entry)
    guard let list = try entry.optional("layers", .array) else {
      files = [NativeFormat.plain(try entry.required("file", .string))]
      look = FrameComposition(content: .image(try Self.raw(of: entry, units.limits)), masks: masks)
      return
    }
    guard (1...units.limits.layers).contains(list.count) else {
      throw JSONError("\(list.count) layers; 1 to \(units.limits.layers) can be shown")
    }
    let size = PixelSize(
      width: Int(try units.pixels(entry, "width").rounded()), height: Int(try units.pixels(entry, "height").rounded()))
    if let fault = size.excess(of: units.limits) { throw JSONError("a picture of " + fault.text) }
    guard size.isWithin(units.limits) else { throw JSONError("a picture of \(size.width)×\(size.height) pixels") }
    var layers: [(z: Double, file: String, layer: Layer)] = []
    var blackout: Masks?
    for (index, member) in list.enumerated() {
      do {
        let layer = try Layer(member, units)
        let z = member.object?["z"].map { $0.double ?? .nan } ?? 0
        guard z.isFinite else { throw JSONError("z: not a number") }
        layers.append((z, NativeFormat.plain(try member.required("file", .string)), layer))
        // A mask of a layer that cannot be applied hides the whole frame.
        if case .everything(let reason) = layer.masks { blackout = .everything(because: "layers[\(index)]: \(reason)") }
      } catch {
        throw JSONError("layers[\(index)]: \(error)")
      }
    }
    // Layers of equal `z` keep the order of the list.
    let sorted = layers.enumerated().sorted { ($0.element.z, $0.offset) < ($1.element.z, $1.offset) }.map(\.element)
    files = sorted.map(\.file)
    look = FrameComposition(
      content: .layers(sorted.map(\.layer), width: size.width, height: size.height), masks: blackout ?? masks)
  }

  fileprivate static func raw(of entry: JSONValue, _ limits: Limits) throws(JSONError) -> RawPixels? {
    guard let pixels = entry.object?["pixels"], pixels != .null else { return nil }
    do {
      return try RawPixels(pixels, limits)
    } catch {
      throw JSONError("pixels: \(error)")
    }
  }
}

extension Layer {
  fileprivate init(_ json: JSONValue, _ units: NativeUnits) throws(JSONError) {
    raw = try NativeFrame.raw(of: json, units.limits)
    let (left, top) = (try units.pixels(json, "x", default: 0), try units.pixels(json, "y", default: 0))
    (x, y) = (Int(left.rounded()), Int(top.rounded()))
    let hidden = units.masks(of: json)
    switch (json.object?["width"], json.object?["height"]) {
    case (nil, nil): (size, masks) = (nil, hidden)
    default:
      let (width, height) = (try units.pixels(json, "width"), try units.pixels(json, "height"))
      // Edges are rounded, not lengths, so that layers that touch still do.
      let fitted = PixelSize(width: Int((left + width).rounded()) - x, height: Int((top + height).rounded()) - y)
      if let fault = fitted.excess(of: units.limits) { throw JSONError(fault.text) }
      guard width > 0, height > 0, fitted.isWithin(units.limits) else {
        throw JSONError("\(fitted.width)×\(fitted.height) pixels")
      }
      // The image is stretched to whole pixels, and its masks too.
      (size, masks) = (fitted, hidden.scaled(Double(fitted.width) / width, Double(fitted.height) / height))
    }
    opacity = json.object?["opacity"].map { $0.double ?? .nan } ?? 1
    guard (0...1).contains(opacity) else { throw JSONError("opacity: not a number from 0 to 1") }
  }
}

extension RawPixels {
  fileprivate init(_ json: JSONValue, _ limits: Limits) throws(JSONError) {
    guard let format = Format(rawValue: try json.required("format", .string)) else {
      throw JSONError("format: not one of \(Format.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    guard let alpha = Alpha(rawValue: try json.optional("alpha", .string) ?? Alpha.premultiplied.rawValue) else {
      throw JSONError("alpha: not one of \(Alpha.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    // The product of two Int32 values cannot overflow an Int.
    func count(_ key: String, atLeast minimum: Int, default absent: Int? = nil) throws(JSONError) -> Int {
      let said = try json.optional(key, .integer) ?? absent.map(Int64.init)
      guard let said else { throw JSONError("no \"\(key)\"") }
      guard said >= minimum, said <= Int32.max else { throw JSONError("\(key) \(said); \(minimum) at least") }
      return Int(said)
    }
    let size = PixelSize(width: try count("width", atLeast: 1), height: try count("height", atLeast: 1))
    if let fault = size.excess(of: limits) { throw JSONError(fault.text) }
    bytesPerRow = try count("bytesPerRow", atLeast: 4 * size.width, default: 4 * size.width)
    alphaBytesPerRow = try count("alphaBytesPerRow", atLeast: size.width, default: size.width)
    (self.format, self.alpha, self.size) = (format, alpha, size)
    if let fault = rowFault { throw JSONError(fault) }
  }
}
