// Rectangles of a picture, or of a layer, that must not be seen. A mask that cannot be applied exactly as given blacks the
// whole picture out: a hidden picture is a nuisance, a leaked one cannot be undone.

import JSON

/// A part of a picture that must not be seen: a rectangle in pixels of the picture as it is shown, or of a layer. Parts of pixels
/// count as whole ones.
public struct Mask: Sendable, Equatable {
  /// Pixels from the left side of the picture.
  public let x: Double
  /// Pixels from the top of the picture.
  public let y: Double
  /// Pixels.
  public let width: Double
  /// Pixels.
  public let height: Double
  /// The colour that covers the region.
  public let colour: Colour

  /// Creates a mask. One that is not a finite rectangle blacks the whole picture out.
  public init(x: Double, y: Double, width: Double, height: Double, colour: Colour = .black) {
    self.x = x
    self.y = y
    self.width = width
    self.height = height
    self.colour = colour
  }

  /// Returns the mask for a picture that is scaled by these factors.
  package func scaled(_ across: Double, _ down: Double) -> Mask {
    Mask(x: x * across, y: y * down, width: width * across, height: height * down, colour: colour)
  }

  /// Returns the pixels that the mask covers in a picture of this size. Edges are rounded outwards and clipped to the picture.
  package func pixels(width pictureWidth: Int, height pictureHeight: Int) -> (x: Range<Int>, y: Range<Int>) {
    func covered(_ start: Double, _ length: Double, _ limit: Int) -> Range<Int> {
      let bounds = 0...Double(limit)
      let first = start.isNaN ? 0 : Int(min(max(start.rounded(.down), bounds.lowerBound), bounds.upperBound))
      let end = start + length
      // After scaling, both may be infinite, and their sum NaN: then the mask covers everything up to the limit.
      let last = end.isNaN ? limit : Int(min(max(end.rounded(.up), bounds.lowerBound), bounds.upperBound))
      return first..<max(first, last)
    }
    return (covered(x, width, pictureWidth), covered(y, height, pictureHeight))
  }
}

/// The hidden parts of a frame.
package enum Masks: Sendable, Equatable {
  case rectangles([Mask])
  /// The whole picture is hidden, because a mask cannot be applied, for this reason.
  case everything(because: String)

  package static let none = Masks.rectangles([])

  /// Returns the masks for a picture that is scaled by these factors.
  package func scaled(_ across: Double, _ down: Double) -> Masks {
    switch self {
    case .rectangles(let list): .rectangles(list.map { $0.scaled(across, down) })
    case .everything: self
    }
  }

  package var areEmpty: Bool { self == .none }

  /// Whether a line meets a pixel that a mask covers, even outside of the picture.
  package func hide(_ line: PointerLine) -> Bool {
    guard case .rectangles(let list) = self else { return true }
    return list.contains {
      line.meets(x: PointerLine.pixels($0.x, $0.width), y: PointerLine.pixels($0.y, $0.height))
    }
  }

  /// The masks as a text for the batch's digest. Equal masks have equal texts, in every version of this program.
  var canonicalText: String {
    switch self {
    case .everything: "all"
    case .rectangles(let list):
      list.map { mask in
        [mask.x, mask.y, mask.width, mask.height].map { String($0.bitPattern, radix: 16) }.joined(separator: ",")
          + (mask.colour == .black ? "" : mask.colour.description)
      }.joined(separator: ";")
    }
  }
}

extension Masks {
  /// Takes masks in pixels.
  package init(_ masks: [Mask]) {
    let bad = masks.firstIndex { !$0.isFinite }
    self = bad.map { .everything(because: "mask \($0) is not a finite rectangle") } ?? .rectangles(masks)
  }

  package init(_ json: JSONValue, in units: NativeUnits) {
    guard let scale = units.scale else {
      self = .everything(because: NativeUnits.scaleRule)
      return
    }
    guard let list = json.array else {
      self = .everything(because: "masks is not a list")
      return
    }
    var rectangles: [Mask] = []
    for (index, member) in list.enumerated() {
      guard let colour = Colour(ofMask: member, else: units.maskColour) else {
        self = .everything(because: "mask \(index) has a colour that is not like #102030")
        return
      }
      guard let mask = Mask(member, scale: scale, colour: colour) else {
        self = .everything(because: "mask \(index) is not a finite rectangle")
        return
      }
      rectangles.append(mask)
    }
    self = .rectangles(rectangles)
  }
}

extension Colour {
  /// The colour of the mask, or of all masks; black if neither has one, and nil if it cannot be understood.
  fileprivate init?(ofMask json: JSONValue, else absent: JSONValue?) {
    guard let said = json.object?["color"] ?? absent else {
      self = .black
      return
    }
    guard let text = said.string else { return nil }
    self.init(text)
  }
}

extension Mask {
  /// nil for anything that is not a finite rectangle of a reasonable size.
  fileprivate init?(_ json: JSONValue, scale: Double, colour: Colour) {
    guard let members = json.object,
      let x = members["x"]?.double, let y = members["y"]?.double, let width = members["width"]?.double,
      let height = members["height"]?.double
    else { return nil }
    self.init(x: x * scale, y: y * scale, width: width * scale, height: height * scale, colour: colour)
    guard isFinite else { return nil }
  }

  /// Far beyond any picture, numbers have no pixels any more.
  fileprivate var isFinite: Bool {
    [x, y, width, height].allSatisfy { abs($0) <= 1e9 } && width >= 0 && height >= 0
  }
}
