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
}

extension Masks: Decodable {
  private struct Rectangle: Decodable {
    let mask: Mask?

    private enum Key: String, CodingKey { case x, y, width, height }

    init(from decoder: any Decoder) throws {
      guard let container = try? decoder.container(keyedBy: Key.self) else {
        mask = nil
        return
      }
      let numbers = [Key.x, .y, .width, .height].map { try? container.decode(Double.self, forKey: $0) }
      guard case (let x?, let y?, let width?, let height?) = (numbers[0], numbers[1], numbers[2], numbers[3]),
        [x, y, width, height, x + width, y + height].allSatisfy(\.isFinite), width >= 0, height >= 0
      else {
        mask = nil
        return
      }
      mask = Mask(x: x, y: y, width: width, height: height)
    }
  }

  public init(from decoder: any Decoder) throws {
    guard let list = try? decoder.singleValueContainer().decode([Rectangle].self) else {
      self = .everything(because: "masks is not a list")
      return
    }
    let rectangles = list.compactMap(\.mask)
    if rectangles.count == list.count {
      self = .rectangles(rectangles)
    } else {
      let broken = list.firstIndex { $0.mask == nil } ?? 0
      self = .everything(because: "mask \(broken) is not a finite rectangle")
    }
  }
}
