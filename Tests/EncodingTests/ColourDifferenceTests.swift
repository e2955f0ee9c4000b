import TestSupport
import Testing

/// Checks of the colour metric itself.
@Suite struct ColourDifferenceTests {
  /// From the test data of Sharma, Wu and Dalal, "The CIEDE2000 Color-Difference Formula", 2005, table 1.
  @Test(
    arguments: [
      (Lab(l: 50, a: 2.6772, b: -79.7751), Lab(l: 50, a: 0, b: -82.7485), 2.0425),
      (Lab(l: 50, a: -1.1848, b: -84.8006), Lab(l: 50, a: 0, b: -82.7485), 1.0000),
      (Lab(l: 50, a: 2.49, b: -0.001), Lab(l: 50, a: -2.49, b: 0.0011), 7.2195),
      (Lab(l: 50, a: 2.5, b: 0), Lab(l: 73, a: 25, b: -18), 27.1492),
      (Lab(l: 60.2574, a: -34.0099, b: 36.2677), Lab(l: 60.4626, a: -34.1751, b: 39.4387), 1.2644),
      (Lab(l: 22.7233, a: 20.0904, b: -46.6940), Lab(l: 23.0331, a: 14.9730, b: -42.5619), 2.0373),
      (Lab(l: 90.8027, a: -2.0831, b: 1.4410), Lab(l: 91.1528, a: -1.6435, b: 0.0447), 1.4441),
      (Lab(l: 2.0776, a: 0.0795, b: -1.1350), Lab(l: 0.9033, a: -0.0636, b: -0.5514), 0.9082),
    ])
  func publishedPairHasThePublishedDifference(one: Lab, two: Lab, difference: Double) {
    #expect(abs(ciede2000(one, two) - difference) < 1e-4)
    #expect(abs(ciede2000(two, one) - difference) < 1e-4)
  }

  @Test func differenceOfPicturesIsTheMeanAndMaximumOfTheirPixels() {
    let white = Pixels(width: 2, height: 1, bytes: [255, 255, 255, 255, 255, 255])
    let half = Pixels(width: 2, height: 1, bytes: [255, 255, 255, 0, 0, 0])
    #expect(ColourDifference(white, white).max == 0)
    // Black and white differ by 100, the maximum.
    #expect(abs(ColourDifference(white, half).mean - 50) < 1e-3)
    #expect(abs(ColourDifference(white, half).max - 100) < 1e-3)
  }

  @Test func halvingCountsTheLastPixelOfAnOddSideTwice() {
    let picture = Pixels(width: 3, height: 1, bytes: [0, 0, 0, 100, 50, 0, 8, 9, 10])
    #expect(picture.halved.bytes == [50, 25, 0, 8, 9, 10])
  }

  @Test func sharedChromaKeepsGreysAndLuma() {
    let grey = Pixels(width: 2, height: 2, bytes: [0, 0, 0, 90, 90, 90, 200, 200, 200, 255, 255, 255])
    #expect(grey.withSharedChroma.bytes == grey.bytes)
    let coloured = Pixels(width: 2, height: 1, bytes: [120, 100, 100, 100, 100, 120])
    #expect(coloured.withSharedChroma.bytes == [112, 102, 112, 108, 98, 108])
  }
}
