// Rectangles of the source picture that must not be seen. A mask that cannot be applied exactly as given blacks the
// whole picture out: to show too little is a nuisance, to show too much cannot be taken back.

/// A rectangle in source pixels; parts of pixels count as whole ones.
public struct Mask: Sendable, Equatable {
  public let x: Double
  public let y: Double
  public let width: Double
  public let height: Double

  public init(x: Double, y: Double, width: Double, height: Double) {
    self.x = x
    self.y = y
    self.width = width
    self.height = height
  }

  /// The pixels it covers of a picture of this size: outwards to whole pixels, inside the picture.
  func pixels(width pictureWidth: Int, height pictureHeight: Int) -> (x: Range<Int>, y: Range<Int>) {
    func covered(_ start: Double, _ length: Double, _ limit: Int) -> Range<Int> {
      let bounds = 0...Double(limit)
      let first = Int(min(max(start.rounded(.down), bounds.lowerBound), bounds.upperBound))
      let last = Int(min(max((start + length).rounded(.up), bounds.lowerBound), bounds.upperBound))
      return first..<max(first, last)
    }
    return (covered(x, width, pictureWidth), covered(y, height, pictureHeight))
  }
}

/// What hides a frame, in part or as a whole.
public enum Masks: Sendable, Equatable {
  case rectangles([Mask])
  /// A mask could not be understood, for this reason: nothing of the picture is shown.
  case everything(because: String)

  public static let none = Masks.rectangles([])

  public var isNone: Bool { self == .none }

  /// The same for the same masks, in every version of this program.
  var canonicalText: String {
    switch self {
    case .everything: "all"
    case .rectangles(let list):
      list.map { mask in
        [mask.x, mask.y, mask.width, mask.height].map { String($0.bitPattern, radix: 16) }.joined(separator: ",")
      }.joined(separator: ";")
    }
  }
}

extension Masks {
  /// - Parameter scale: how many pixels a unit of the rectangles has; nil for one.
  init(_ json: JSONValue, scale: JSONValue? = nil) {
    let pixels = scale.map { $0.double ?? .nan } ?? 1
    guard pixels > 0, pixels <= 16 else {
      self = .everything(because: "scale is not a number above 0, up to 16")
      return
    }
    guard let list = json.array else {
      self = .everything(because: "masks is not a list")
      return
    }
    var rectangles: [Mask] = []
    for (index, member) in list.enumerated() {
      guard let mask = Mask(member, scale: pixels) else {
        self = .everything(because: "mask \(index) is not a finite rectangle")
        return
      }
      rectangles.append(mask)
    }
    self = .rectangles(rectangles)
  }
}

extension Mask {
  /// nil for anything that is not a finite rectangle.
  fileprivate init?(_ json: JSONValue, scale: Double) {
    guard let members = json.object,
      let x = members["x"]?.double, let y = members["y"]?.double, let width = members["width"]?.double,
      let height = members["height"]?.double,
      [x, y, width, height, (x + width) * scale, (y + height) * scale].allSatisfy(\.isFinite), width >= 0, height >= 0
    else { return nil }
    self.init(x: x * scale, y: y * scale, width: width * scale, height: height * scale)
  }
}
