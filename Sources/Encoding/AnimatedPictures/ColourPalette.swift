/// The colours of a picture with few of them: median cut by variance.
struct ColourPalette: Equatable {
  /// 0xRRGGBB.
  let colours: [UInt32]

  init(colours: [UInt32]) { self.colours = colours }

  /// - Parameters:
  ///   - counts: at least one colour.
  ///   - maximum: the most colours of the palette.
  ///   - meanError: the mean squared distance of a pixel to its colour at which the palette has enough colours.
  init(_ counts: ColourCounts, maximum: Int, meanError: Double) {
    var entries = counts.entries.map { Colour($0) }
    let pixels = entries.reduce(0) { $0 + $1.pixels }
    var boxes = [Box(entries[...])]
    while boxes.count < maximum, boxes.reduce(0, { $0 + $1.error }) > meanError * pixels,
      let worst = boxes.indices.max(by: { boxes[$0].error < boxes[$1].error }), boxes[worst].error > 0
    {
      let box = boxes[worst]
      let middle = entries[box.range].partition { $0[box.axis] > box.mean }
      // A mean that is rounded can leave nothing on one side.
      guard box.range.lowerBound < middle, middle < box.range.upperBound else { break }
      boxes[worst] = Box(entries[box.range.lowerBound..<middle])
      boxes.append(Box(entries[middle..<box.range.upperBound]))
    }
    colours = boxes.map { $0.colour(of: entries) }
  }

  private struct Colour {
    let (red, green, blue): (Double, Double, Double)
    let pixels: Double
    let code: UInt32

    init(_ entry: ColourCounts.Entry) {
      (red, green, blue) = (
        Double(entry.colour >> 16), Double(entry.colour >> 8 & 0xFF), Double(entry.colour & 0xFF)
      )
      (pixels, code) = (Double(entry.pixels), entry.colour)
    }

    subscript(axis: Int) -> Double { axis == 0 ? red : axis == 1 ? green : blue }
  }

  /// Colours that become one.
  private struct Box {
    let range: Range<Int>
    /// The sum of the squared distances of all pixels to the mean.
    let error: Double
    /// The channel with the largest variance, and its mean.
    let axis: Int
    let mean: Double
    private let (red, green, blue): (Double, Double, Double)

    init(_ colours: ArraySlice<Colour>) {
      var (pixels, red, green, blue) = (0.0, 0.0, 0.0, 0.0)
      for colour in colours {
        pixels += colour.pixels
        red += colour.pixels * colour.red
        green += colour.pixels * colour.green
        blue += colour.pixels * colour.blue
      }
      (red, green, blue) = (red / pixels, green / pixels, blue / pixels)
      var errors = (0.0, 0.0, 0.0)
      for colour in colours {
        errors.0 += colour.pixels * (colour.red - red) * (colour.red - red)
        errors.1 += colour.pixels * (colour.green - green) * (colour.green - green)
        errors.2 += colour.pixels * (colour.blue - blue) * (colour.blue - blue)
      }
      range = colours.startIndex..<colours.endIndex
      error = errors.0 + errors.1 + errors.2
      (axis, mean) =
        errors.1 >= max(errors.0, errors.2) ? (1, green) : errors.0 >= errors.2 ? (0, red) : (2, blue)
      (self.red, self.green, self.blue) = (red, green, blue)
    }

    /// The colour of most pixels, so that flat areas keep theirs; else the mean.
    func colour(of all: [Colour]) -> UInt32 {
      var (pixels, first) = (0.0, all[range.lowerBound])
      for colour in all[range] {
        pixels += colour.pixels
        if colour.pixels > first.pixels { first = colour }
      }
      if 2 * first.pixels > pixels { return first.code }
      return UInt32(red.rounded()) << 16 | UInt32(green.rounded()) << 8 | UInt32(blue.rounded())
    }
  }
}
