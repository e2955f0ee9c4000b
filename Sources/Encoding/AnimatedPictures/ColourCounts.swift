/// Counts the pixels of each colour. Memory is bounded: of very many colours, similar ones count as one.
struct ColourCounts {
  struct Entry: Equatable {
    /// 0xRRGGBB.
    let colour: UInt32
    var pixels: Int
  }

  /// In the order of their first pixels.
  private(set) var entries: [Entry] = []
  /// Places in `entries`, from 1; 0 is free. At most half of it is in use.
  private var places = [UInt32](repeating: 0, count: 1 << 17)
  private static let maximum = 1 << 16

  /// Counts the drawn pixels of a change, and forgets all others.
  mutating func count(_ change: AnimationCanvas.Change) {
    // Of 15 bits there are fewer than the maximum.
    if !count(change, { $0 }) { _ = count(change) { $0 & 0xF8F8F8 | 0x040404 } }
  }

  /// - Returns: false if there are too many colours.
  private mutating func count(_ change: AnimationCanvas.Change, _ rounded: (UInt32) -> UInt32) -> Bool {
    for index in places.indices { places[index] = 0 }
    entries.removeAll(keepingCapacity: true)
    for (pixel, isDrawn) in change.isDrawn.enumerated() where isDrawn {
      let colour = rounded(change.pixels.colour(at: pixel))
      var place = Int((colour &* 0x9E37_79B1) >> 15)
      while places[place] > 0, entries[Int(places[place]) - 1].colour != colour {
        place = (place + 1) % places.count
      }
      if places[place] > 0 {
        entries[Int(places[place]) - 1].pixels += 1
      } else {
        guard entries.count < Self.maximum else { return false }
        entries.append(Entry(colour: colour, pixels: 1))
        places[place] = UInt32(entries.count)
      }
    }
    return true
  }
}

extension [UInt8] {
  /// The colour of a pixel of RGB, as 0xRRGGBB.
  func colour(at pixel: Int) -> UInt32 {
    UInt32(self[3 * pixel]) << 16 | UInt32(self[3 * pixel + 1]) << 8 | UInt32(self[3 * pixel + 2])
  }
}
