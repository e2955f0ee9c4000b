import TestSupport
import Testing

@testable import Encoding
@testable import FrameBatches

/// Samples of fewer bits than they are stored in, and drawings that the background hides.
@Suite struct SampleDepthTests {
  init() { FFmpegLog.silence() }

  private func decoded(_ file: [UInt8], bits: Int? = nil, background: Colour = .black) throws -> DecodedPicture {
    let decoder = PictureDecoder(limits: Limits(), background: background)
    decoder.sampleBits = bits
    return try decoder.picture(from: [file], FrameComposition(content: .image(nil), masks: .none))
  }

  /// Returns the luma of the two pixels on the left; 16 is black, 235 white.
  private func luma(_ file: [UInt8], bits: Int? = nil) throws -> [UInt8] {
    Array(try decoded(file, bits: bits).picture.bytes.prefix(2))
  }

  /// A grey PNG of 2×2 pixels of 16 bits, its columns of one sample each.
  private func png(_ samples: [Int], bits: UInt8? = nil, kind: UInt8 = 0) -> [UInt8] {
    let pixels = kind == 0 ? samples : samples.flatMap { [$0, $0, $0] }
    let chunks = bits.map { [("sBIT", [UInt8](repeating: $0, count: pixels.count / samples.count))] } ?? []
    return PNGImage.file(width: 2, height: 2, depth: 16, kind: kind, samples: pixels + pixels, chunks: chunks)
  }

  /// The same as a TIFF with a highest sample.
  private func tiff(_ samples: [Int], highest: Int) -> [UInt8] {
    func number(_ value: Int, _ count: Int = 4) -> [UInt8] { (0..<count).map { UInt8(value >> (8 * $0) & 255) } }
    let tags = [(256, 2), (257, 2), (258, 16), (259, 1), (262, 1), (273, 8), (278, 2), (279, 8), (281, highest)]
    let entries = tags.flatMap { number($0.0, 2) + number(4, 2) + number(1) + number($0.1) }
    return Array("II".utf8) + number(42, 2) + number(16) + (samples + samples).flatMap { number($0, 2) }
      + number(tags.count, 2) + entries + number(0)
  }

  @Test func samplesAreScaledAsTheFileSays() throws {
    for kind: UInt8 in [0, 2] { #expect(try luma(png([2_048, 4_095], bits: 12, kind: kind)) == [126, 235]) }
    #expect(try luma(png([512, 1_023], bits: 10)) == [126, 235])
    #expect(try luma(tiff([2_048, 4_095], highest: 4_095)) == [126, 235])
    #expect(try decoded(tiff([2_048, 4_095], highest: 4_095)).facts == PictureFacts())
  }

  /// PNG's specification puts significant bits on top. A TIFF's number may be that of its brightest pixel.
  @Test func samplesOfTheWholeRangeStayAsTheyAre() throws {
    let plain = try luma(png([2_048, 4_080]))
    #expect(try luma(png([2_048, 4_080], bits: 12)) == plain && plain.allSatisfy { $0 < 32 })
    #expect(try luma(png([0, 65_535], bits: 12)) == [16, 235])
    #expect(try luma(tiff([2_048, 4_000], highest: 4_000)) == luma(png([2_048, 4_000])))
    #expect(try luma(tiff([0, 65_535], highest: 4_095)) == [16, 235])
  }

  @Test func bitsOfTheUserOverrideThoseOfTheFile() throws {
    #expect(try luma(png([2_048, 4_095]), bits: 12) == [126, 235])
    #expect(try luma(png([2_048, 4_095], bits: 12), bits: 16) == luma(png([2_048, 4_095])))
    #expect(try luma(png([2_048, 60_000]), bits: 12) == [126, 235])
    let narrow = PNGImage.file(width: 1, height: 1, depth: 8, kind: 0, samples: [15])
    #expect(try decoded(narrow, bits: 12).picture.bytes == decoded(narrow).picture.bytes)
  }

  @Test(
    arguments: [(255, 8), (1_000, 10), (4_095, 12), (4_096, 14), (16_383, 14), (16_384, nil), (0, nil)] as [(Int, Int?)]
  )
  func pictureThatIsDarkThroughoutHasAWarning(highest: Int, bits: Int?) throws {
    let warnings = try decoded(png([0, highest])).facts.warnings
    #expect(warnings.count == (bits == nil ? 0 : 1))
    if let bits {
      #expect(warnings[0].contains("--bits \(bits) ") && warnings[0].contains("above \(highest) of 65535"))
    }
    var facts = try decoded(png([0, highest])).facts
    facts.add(try decoded(png([0, 65_535])).facts)
    #expect(facts.warnings == [])
  }

  /// A black square on a transparent page.
  private func drawing(_ colour: Int, alpha: Int = 255) -> [UInt8] {
    let samples = (0..<400).flatMap { index -> [Int] in
      let isDrawn = (5..<9).contains(index % 20) && index / 20 < 12
      return [colour, colour, colour, isDrawn ? alpha : 0]
    }
    return PNGImage.file(width: 20, height: 20, depth: 8, kind: 6, samples: samples)
  }

  @Test func drawingInTheColourOfTheBackgroundHasANote() throws {
    let hidden = "drawn in the colour of the background, so that nothing is seen: try --background "
    #expect(try decoded(drawing(0)).notes == [hidden + "white"])
    let white = Colour(red: 255, green: 255, blue: 255)
    #expect(try decoded(drawing(250), background: white).notes == [hidden + "black"])
    #expect(try decoded(drawing(0), background: white).notes == [] && decoded(drawing(250)).notes == [])
    // A soft line is hidden, too. A bright one is seen through.
    #expect(try decoded(drawing(0, alpha: 120)).notes == [hidden + "white"])
    #expect(try decoded(drawing(250, alpha: 60)).notes == [])
    // A page without a drawing, and an opaque one.
    #expect(try decoded(drawing(0, alpha: 0)).notes == [])
    let black = PNGImage.file(width: 1, height: 1, depth: 8, kind: 6, samples: [0, 0, 0, 255])
    #expect(try decoded(black).notes == [])
  }
}
