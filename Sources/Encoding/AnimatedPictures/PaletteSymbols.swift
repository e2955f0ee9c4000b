extension AnimationCanvas.Change {
  /// Returns the index of each pixel's colour, row by row.
  ///
  /// - Parameters:
  ///   - transparent: the index of pixels that are not drawn.
  ///   - isDithered: whether the pixels around get the error of each pixel (Floyd and Steinberg), so that areas have the right
  ///     colour on average.
  func symbols(_ mapper: PaletteMapper, transparent: UInt8, isDithered: Bool) -> [UInt8] {
    guard isDithered else {
      return isDrawn.enumerated().map { $1 ? mapper.index(of: pixels.colour(at: $0)) : transparent }
    }
    var symbols = [UInt8](repeating: transparent, count: isDrawn.count)
    // In 16ths, of a row and of the next one, with a column on either side.
    var (errors, next) = (noErrors, noErrors)
    for y in 0..<area.height {
      for x in 0..<area.width where isDrawn[y * area.width + x] {
        let pixel = y * area.width + x
        func wanted(_ channel: Int) -> Int {
          min(255, max(0, Int(pixels[3 * pixel + channel]) + (errors[3 * (x + 1) + channel] + 8) >> 4))
        }
        let (red, green, blue) = (wanted(0), wanted(1), wanted(2))
        symbols[pixel] = mapper.index(of: UInt32(red << 16 | green << 8 | blue))
        let shown = mapper[symbols[pixel]]
        for (channel, error) in [red - shown.red, green - shown.green, blue - shown.blue].enumerated() {
          errors[3 * (x + 2) + channel] += 7 * error
          next[3 * x + channel] += 3 * error
          next[3 * (x + 1) + channel] += 5 * error
          next[3 * (x + 2) + channel] += error
        }
      }
      (errors, next) = (next, noErrors)
    }
    return symbols
  }

  private var noErrors: [Int] { Array(repeating: 0, count: 3 * (area.width + 2)) }
}
