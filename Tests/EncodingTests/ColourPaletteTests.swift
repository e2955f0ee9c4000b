import CFFmpeg
import TestSupport
import Testing

@testable import Encoding

/// Colours for the palettes of GIFs, and how pixels find them.
@Suite struct ColourPaletteTests {
  /// A change of pixels of these colours, in one row.
  private func change(_ colours: [UInt32]) -> AnimationCanvas.Change {
    AnimationCanvas.Change(
      area: SheetArea(x: 0, y: 0, width: colours.count, height: 1),
      pixels: colours.flatMap { [UInt8($0 >> 16), UInt8($0 >> 8 & 0xFF), UInt8($0 & 0xFF)] },
      isDrawn: Array(repeating: true, count: colours.count))
  }

  private func counts(_ colours: [UInt32]) -> ColourCounts {
    var counts = ColourCounts()
    counts.count(change(colours))
    return counts
  }

  private func noise(_ count: Int, seed: Int) -> [UInt32] {
    var random = Random(seed: seed)
    return (0..<count).map { _ in UInt32(random.int(0...0xFF_FFFF)) }
  }

  private func distance(_ one: UInt32, _ other: UInt32) -> Int {
    [16, 8, 0].reduce(0) { sum, shift in
      let difference = Int(one >> UInt32(shift) & 0xFF) - Int(other >> UInt32(shift) & 0xFF)
      return sum + difference * difference
    }
  }

  @Test func drawnPixelsOfEachColourAreCounted() {
    var counts = counts([1, 2, 1])
    #expect(counts.entries == [.init(colour: 1, pixels: 2), .init(colour: 2, pixels: 1)])
    let part = change([3, 4, 5, 4])
    counts.count(.init(area: part.area, pixels: part.pixels, isDrawn: [false, true, true, true]))
    #expect(counts.entries == [.init(colour: 4, pixels: 2), .init(colour: 5, pixels: 1)])
  }

  @Test func moreColoursThanThereIsRoomForAreCountedWithSimilarOnes() {
    let counts = counts(noise(100_000, seed: 1))
    #expect(counts.entries.count <= 1 << 15)
    #expect(counts.entries.reduce(0) { $0 + $1.pixels } == 100_000)
  }

  @Test func fewColoursAreAllInThePalette() {
    let colours: [UInt32] = [0xFFFFFF, 0xF8F9FA, 0x212529, 0x0D6EFD, 0x000000]
    let palette = ColourPalette(counts(colours + colours), maximum: 255, meanError: 0)
    #expect(palette.colours.sorted() == colours.sorted())
  }

  @Test(arguments: [1, 2, 16, 255]) func paletteHasAtMostTheMaximum(maximum: Int) {
    let palette = ColourPalette(counts(noise(5_000, seed: 2)), maximum: maximum, meanError: 0)
    #expect(palette.colours.count == maximum)
  }

  @Test func paletteEndsWhereItIsGoodEnough() {
    let all = counts(noise(5_000, seed: 3))
    var latest = 0
    for error in [4_000.0, 2_000, 1_000] {
      let palette = ColourPalette(all, maximum: 255, meanError: error)
      #expect(PaletteMapper(palette).meanError(of: all) <= error)
      #expect(palette.colours.count > latest)
      latest = palette.colours.count
    }
    #expect(latest < 255)
  }

  @Test func areaOfOneColourKeepsIt() {
    let noise = (0..<100).map { UInt32(0xFD_FD_FD) + UInt32($0 % 3) }
    let palette = ColourPalette(counts(Array(repeating: 0xFF_FF_FF, count: 900) + noise), maximum: 1, meanError: 0)
    #expect(palette.colours == [0xFF_FF_FF])
  }

  @Test func pixelGetsTheNearestColour() throws {
    let palette = ColourPalette(counts(noise(20_000, seed: 4)), maximum: 255, meanError: 0)
    let mapper = PaletteMapper(palette)
    for colour in noise(2_000, seed: 5) {
      let nearest = palette.colours.map { distance($0, colour) }.min()
      // Twice: the cache answers the same.
      for _ in 0..<2 { #expect(distance(palette.colours[Int(mapper.index(of: colour))], colour) == nearest) }
    }
    for (index, colour) in palette.colours.enumerated() { #expect(mapper.index(of: colour) == UInt8(index)) }
  }

  /// Without dithering all pixels of a shade are dark, or all are bright.
  @Test func ditheredAreaHasItsBrightness() {
    let palette = ColourPalette(colours: [0x404040, 0x606060])
    let side = 32
    for level in 0x40...0x60 {
      let area = AnimationCanvas.Change(
        area: SheetArea(x: 0, y: 0, width: side, height: side),
        pixels: Array(repeating: UInt8(level), count: 3 * side * side),
        isDrawn: (0..<side * side).map { $0 % 5 > 0 })
      for isDithered in [false, true] {
        let symbols = area.symbols(PaletteMapper(palette), transparent: 2, isDithered: isDithered)
        #expect(symbols.enumerated().allSatisfy { ($1 == 2) == ($0 % 5 == 0) })
        let bright = Double(symbols.count { $0 == 1 }) / Double(symbols.count { $0 < 2 })
        let wanted = isDithered ? Double(level - 0x40) / 0x20 : level > 0x50 ? 1 : 0
        // The error that falls on pixels that are not drawn is lost.
        #expect(abs(bright - wanted) < 0.1 || !isDithered && level == 0x50, "\(level), \(isDithered): \(bright)")
      }
    }
  }
}
