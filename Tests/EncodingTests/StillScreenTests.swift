import TestSupport
import Testing

@testable import Encoding

/// Digests of pictures, and pictures of one colour.
@Suite struct StillScreenTests {
  @Test(arguments: [(1, 1), (2, 2), (5, 3), (64, 48), (130, 41)])
  func pictureOfOneColourIsBlankUntilAPixelDiffers(width: Int, height: Int) throws {
    var random = Random(seed: width)
    for colour in [[0, 0, 0], [255, 255, 255], [254, 0, 0]] {
      let plain = (0..<width * height).flatMap { _ in colour }
      let blank = try picture(plain, width, height)
      #expect(try blank.isBlank && blank.digest == picture(plain, width, height).digest)
      guard width * height > 1 else { continue }
      for _ in 0..<10 {
        var changed = plain
        let pixel = Int(random.int(0...Int64(width * height - 1)))
        changed.replaceSubrange(3 * pixel..<3 * pixel + 3, with: [0, 200, 90])
        let other = try picture(changed, width, height)
        #expect(!other.isBlank && other.digest != blank.digest)
      }
    }
  }

  @Test func sizeIsPartOfTheDigest() throws {
    let pixels = [Int](repeating: 7, count: 3 * 64)
    #expect(try picture(pixels, 16, 4).digest != picture(pixels, 4, 16).digest)
    // Both are coded with 4 × 16 samples.
    let narrow = [Int](repeating: 7, count: 3 * 48)
    #expect(try picture(narrow, 3, 16).digest != picture(pixels, 4, 16).digest)
  }
}
