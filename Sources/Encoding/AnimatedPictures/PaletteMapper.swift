/// Finds the colours of a palette that are nearest to those of pixels.
final class PaletteMapper {
  struct Colour {
    let red: Int
    let green: Int
    let blue: Int
    fileprivate let index: UInt8

    fileprivate init(_ code: UInt32, index: UInt8) {
      (red, green, blue) = (Int(code >> 16), Int(code >> 8 & 0xFF), Int(code & 0xFF))
      self.index = index
    }

    fileprivate var sum: Int { red + green + blue }

    fileprivate func distance(_ other: Colour) -> Int {
      let (x, y, z) = (red - other.red, green - other.green, blue - other.blue)
      return x * x + y * y + z * z
    }
  }

  private static let slots = 1 << 16

  /// In the order of the palette, and by the sum of their channels.
  private let colours: [Colour]
  private let sorted: [Colour]
  /// For each sum, the number of colours with a lower one.
  private let lower: [Int]
  /// Cached results: `colour + 1 << 8 | index`.
  private var known = [UInt64](repeating: 0, count: slots)

  /// - Parameter palette: 1 to 256 colours.
  init(_ palette: ColourPalette) {
    colours = palette.colours.enumerated().map { Colour($1, index: UInt8($0)) }
    sorted = colours.sorted { ($0.sum, $0.index) < ($1.sum, $1.index) }
    var lower = [Int](repeating: 0, count: 3 * 255 + 2)
    for colour in colours { lower[colour.sum + 1] += 1 }
    for sum in lower.indices.dropFirst() { lower[sum] += lower[sum - 1] }
    self.lower = lower
  }

  subscript(index: UInt8) -> Colour { colours[Int(index)] }

  /// Returns the index of the nearest colour.
  func index(of code: UInt32) -> UInt8 {
    let slot = Int((code &* 0x9E37_79B1) >> 16)
    if known[slot] >> 8 != UInt64(code) + 1 {
      known[slot] = (UInt64(code) + 1) << 8 | UInt64(nearest(Colour(code, index: 0)).index)
    }
    return UInt8(truncatingIfNeeded: known[slot])
  }

  /// The mean squared distance of the pixels to their nearest colours.
  func meanError(of counts: ColourCounts) -> Double {
    var (error, pixels) = (0, 0)
    for entry in counts.entries {
      let colour = Colour(entry.colour, index: 0)
      error += entry.pixels * nearest(colour).distance(colour)
      pixels += entry.pixels
    }
    return Double(error) / Double(max(1, pixels))
  }

  private func nearest(_ colour: Colour) -> Colour {
    let sum = colour.sum
    var (below, above) = (lower[sum] - 1, lower[sum])
    var (best, least) = (sorted[0], Int.max / 3)
    while true {
      // A squared distance is at least a third of that of the sums.
      let goesDown = below >= 0 && (sum - sorted[below].sum) * (sum - sorted[below].sum) < 3 * least
      let goesUp = above < sorted.count && (sorted[above].sum - sum) * (sorted[above].sum - sum) < 3 * least
      guard goesDown || goesUp else { return best }
      for (place, isWanted) in [(below, goesDown), (above, goesUp)] where isWanted {
        let distance = sorted[place].distance(colour)
        if distance < least { (best, least) = (sorted[place], distance) }
      }
      if goesDown { below -= 1 }
      if goesUp { above += 1 }
    }
  }
}
