// The parts of a published picture that masks cover, in the frames of a manifest: "masks":[{"x":12,"y":300,"width":351,"height":45}].

import FrameBatches
import JSON

package enum PaintedMasks {
  /// The member of a manifest's frame.
  package static let key = "masks"
  /// Maximum number of masks of a frame. More are listed as one that contains them all.
  static let maximumOfFrame = 256
  /// Maximum number of masks of a manifest. With more, each frame lists one that contains all of its own.
  package static let maximumOfManifest = 20_000

  /// Returns the masks that a manifest lists for each of its frames.
  package static func listed(_ frames: [[PictureRegion]]) -> [[PictureRegion]] {
    guard frames.reduce(0, { $0 + $1.count }) > maximumOfManifest else { return frames }
    return frames.map(contained)
  }

  package static func json(_ masks: [PictureRegion]) -> JSONValue { .array(masks.map(\.json)) }

  /// Reads the member of a manifest's frame.
  ///
  /// - Parameter size: of the segment's pictures.
  /// - Returns: none if the frame has no masks, or not as this program writes them: a verification reports that.
  package static func read(_ frame: [String: JSONValue]?, of size: PixelSize) -> [PictureRegion] {
    guard let list = frame?[key]?.array, list.count <= maximumOfFrame else { return [] }
    let masks = list.compactMap { PictureRegion($0, in: size) }
    return masks.count == list.count ? masks : []
  }

  /// Masks, each once. More than ``maximumOfFrame`` become one that contains them all.
  package struct Union {
    package private(set) var masks: [PictureRegion] = []
    private var known: Set<PictureRegion> = []

    package init() {}

    package mutating func add(_ mask: PictureRegion) {
      if known.contains(mask) { return }
      masks.append(mask)
      if known.count < PaintedMasks.maximumOfFrame {
        known.insert(mask)
      } else {
        masks = PaintedMasks.contained(masks)
      }
    }
  }

  /// Returns the bounds of all masks, if there are any.
  static func contained(_ masks: [PictureRegion]) -> [PictureRegion] {
    guard masks.count > 1, let left = masks.map(\.x).min(), let top = masks.map(\.y).min(),
      let right = masks.map({ $0.x + $0.width }).max(), let bottom = masks.map({ $0.y + $0.height }).max()
    else { return masks }
    return [PictureRegion(x: left, y: top, width: right - left, height: bottom - top)]
  }
}

extension FrameComposition {
  /// Returns the parts of its picture that masks cover: whole pixels, clipped to the picture, each once. Masks of a layer are there even
  /// where other layers lie above them.
  ///
  /// - Parameters:
  ///   - size: of the picture as it is composed.
  ///   - shown: of the picture as it is published.
  func paintedMasks(of size: PixelSize, as shown: PixelSize) -> [PictureRegion] {
    guard hidesAnything else { return [] }
    var found = PaintedMasks.Union()
    for part in hiddenParts(of: size) where !part.x.isEmpty && !part.y.isEmpty {
      let region = PictureRegion(x: part.x.lowerBound, y: part.y.lowerBound, width: part.x.count, height: part.y.count)
      found.add(region.scaled(from: size, to: shown))
    }
    return found.masks
  }

  private typealias Part = (x: Range<Int>, y: Range<Int>)

  private func hiddenParts(of size: PixelSize) -> [Part] {
    guard case .rectangles(let own) = masks else { return [(0..<size.width, 0..<size.height)] }
    func pixels(_ mask: Mask) -> Part { mask.pixels(width: size.width, height: size.height) }
    var parts = own.map(pixels)
    guard case .layers(let layers, _, _) = content else { return parts }
    for layer in layers {
      guard case .rectangles(let list) = layer.masks else { return [(0..<size.width, 0..<size.height)] }
      let (x, y) = (Double(layer.x), Double(layer.y))
      let bounds = layer.size.map { pixels(Mask(x: x, y: y, width: Double($0.width), height: Double($0.height))) }
      parts += list.map { mask in
        let part = pixels(Mask(x: x + mask.x, y: y + mask.y, width: mask.width, height: mask.height))
        return bounds.map { (part.x.clamped(to: $0.x), part.y.clamped(to: $0.y)) } ?? part
      }
    }
    return parts
  }
}

extension PictureRegion {
  /// Returns the part of a picture of another size that has the same content. Edges are rounded outwards to whole pixels.
  ///
  /// - Parameters:
  ///   - size: of the picture that the region is a part of, at least 1×1.
  ///   - other: at most 2¹⁶ pixels a side.
  package func scaled(from size: PixelSize, to other: PixelSize) -> PictureRegion {
    if size == other { return self }
    let (left, top) = (x * other.width / size.width, y * other.height / size.height)
    let right = ((x + width) * other.width + size.width - 1) / size.width
    let bottom = ((y + height) * other.height + size.height - 1) / size.height
    return PictureRegion(x: left, y: top, width: right - left, height: bottom - top)
  }

  package var json: JSONValue {
    .object(["x": .number(x), "y": .number(y), "width": .number(width), "height": .number(height)])
  }

  /// Reads a region.
  ///
  /// - Returns: nil if it is not a part of a picture of this size.
  package init?(_ json: JSONValue, in size: PixelSize) {
    func range(_ start: String, _ length: String, _ limit: Int) -> Range<Int>? {
      guard let first = json.object?[start]?.integer, let count = json.object?[length]?.integer,
        (0..<Int64(limit)).contains(first), count > 0, count <= Int64(limit) - first
      else { return nil }
      return Int(first)..<Int(first + count)
    }
    guard let columns = range("x", "width", size.width), let rows = range("y", "height", size.height) else {
      return nil
    }
    self.init(x: columns.lowerBound, y: rows.lowerBound, width: columns.count, height: rows.count)
  }
}
