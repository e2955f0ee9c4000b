/// A mask of a screenshot, and the measured difference that it makes.
public struct MaskRectangle: Sendable {
  let x: Double
  let y: Double
  let width: Double
  let height: Double

  /// Makes a random mask, in eighths of a pixel, that may extend beyond a picture of 180×320.
  public init(_ random: inout Random) {
    func length(_ range: ClosedRange<Int64>) -> Double { Double(random.int(range)) / 8 }
    (x, y, width, height) = (length(-200...1_400), length(-200...2_500), length(0...600), length(0...600))
  }

  public func json(scale: Double) -> String {
    #"{"x":\#(x / scale),"y":\#(y / scale),"width":\#(width / scale),"height":\#(height / scale)}"#
  }

  /// Returns whether the mask covers part of the pixel, or of a pixel within `margin`.
  func covers(_ column: Int, _ row: Int, margin: Int) -> Bool {
    func meets(_ start: Double, _ length: Double, _ pixel: Int) -> Bool {
      Double(pixel) >= start.rounded(.down) - Double(margin)
        && Double(pixel) < (start + length).rounded(.up) + Double(margin)
    }
    return meets(x, width, column) && meets(y, height, row)
  }
}

extension Pixels {
  /// The difference between a masked picture and the expected one.
  public struct MaskDifference {
    /// The largest difference from the mask's colour, in any pixel under a mask.
    public var atEdges = 0
    /// The largest difference from the mask's colour, at least eight pixels inside a mask's edge.
    public var inside = 0
    /// The largest mean difference from the unmasked picture, over blocks of 16×16 pixels at least eight pixels from
    /// all masks.
    public var outside = 0.0
  }

  public func difference(
    toUnmasked plain: Pixels, under rectangles: [MaskRectangle], of colour: (Int, Int, Int)
  ) -> MaskDifference {
    var result = MaskDifference()
    func pixel(_ index: Int, of picture: Pixels) -> (Int, Int, Int) {
      (Int(picture.bytes[3 * index]), Int(picture.bytes[3 * index + 1]), Int(picture.bytes[3 * index + 2]))
    }
    func distances(_ one: (Int, Int, Int), _ other: (Int, Int, Int)) -> (Int, Int, Int) {
      (abs(one.0 - other.0), abs(one.1 - other.1), abs(one.2 - other.2))
    }
    for y in 0..<height {
      for x in 0..<width where rectangles.contains(where: { $0.covers(x, y, margin: 0) }) {
        let distance = distances(pixel(y * width + x, of: self), colour)
        let largest = max(distance.0, distance.1, distance.2)
        result.atEdges = max(result.atEdges, largest)
        if rectangles.contains(where: { $0.covers(x, y, margin: -8) }) { result.inside = max(result.inside, largest) }
      }
    }
    for top in stride(from: 0, to: height, by: 16) {
      for left in stride(from: 0, to: width - 16, by: 16) {
        let block = (0..<256).map { (x: left + $0 % 16, y: top + $0 / 16) }
        guard !block.contains(where: { pixel in rectangles.contains { $0.covers(pixel.x, pixel.y, margin: 8) } }) else {
          continue
        }
        let sum = block.reduce(0) { sum, at in
          let index = at.y * width + at.x
          let distance = distances(pixel(index, of: self), pixel(index, of: plain))
          return sum + distance.0 + distance.1 + distance.2
        }
        result.outside = max(result.outside, Double(sum) / 768)
      }
    }
    return result
  }
}
