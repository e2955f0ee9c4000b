import FrameBatches
import TestSupport
import Testing

@testable import Encoding

/// The bytes of GIF and WebP. `AnimatedFilmTests` has them judged by other programs.
@Suite struct AnimatedPictureTests {
  private let size = PixelSize(width: 24, height: 17)

  private func picture(_ level: UInt8, except changed: Range<Int> = 0..<0) throws -> FrameBuffer {
    var bytes = [UInt8](repeating: level, count: 3 * size.width * size.height)
    for pixel in changed { bytes[3 * pixel] = ~level }
    return try FrameBuffer(unpacking: bytes, size, isRGB: true)
  }

  @Test(arguments: AnimationFormat.allCases) func equalPicturesAreOne(format: AnimationFormat) throws {
    let encoder = try format.encoder(size)
    #expect(try encoder.encode(picture(9)) != nil)
    #expect(try encoder.encode(picture(9)) == nil)
    #expect(try encoder.encode(picture(200)) != nil)
    #expect(try encoder.encode(picture(9)) != nil)
  }

  @Test(arguments: AnimationFormat.allCases) func headHasItsSizeWhateverFollows(format: AnimationFormat) throws {
    let encoder = try format.encoder(size)
    _ = try encoder.encode(picture(0))
    let headBytes = encoder.headBytes
    for level: UInt8 in [90, 180] {
      _ = try encoder.encode(picture(level, except: 0..<Int(level)))
      #expect(encoder.headBytes == headBytes && encoder.head(pictureBytes: Int(level) * 1_000).count == headBytes)
    }
  }

  @Test func gifHasItsHoldInHundredths() throws {
    let encoder = try AnimationFormat.gif.encoder(size)
    let first = try #require(try encoder.encode(picture(0)))
    // The control extension: keep the picture, 258 hundredths, nothing is transparent. Then the whole picture.
    #expect(first.held(for: 258).prefix(8) == [0x21, 0xF9, 4, 4, 2, 1, 0, 0])
    #expect(first.held(for: 258)[8..<18] == [0x2C, 0, 0, 0, 0, 24, 0, 17, 0, 0])
    let second = try #require(try encoder.encode(picture(0, except: 50..<52)))
    #expect(second.held(for: 1)[8..<17] == [0x2C, 2, 0, 2, 0, 2, 0, 1, 0])
    let unchanged: [UInt8] = [0x21, 0xF9, 4, 5, 0xFF, 0xFF, 1, 0, 0x2C, 0, 0, 0, 0, 1, 0, 1, 0]
    #expect(try encoder.unchanged().held(for: 65_535).starts(with: unchanged))
    let head = encoder.head(pictureBytes: 0)
    // One colour, and the transparent one.
    #expect(Array(head[..<19]) == Array("GIF89a".utf8) + [24, 0, 17, 0, 0xF0, 0, 0] + Array(repeating: 0, count: 6))
    #expect(Array(head).firstRange(of: [0x21, 0xFF, 11] + Array("NETSCAPE2.0".utf8) + [3, 1, 0, 0, 0]) != nil)
    #expect(encoder.tail == [0x3B])
  }

  /// The colours of the second picture are not those of the first one.
  @Test func pictureOfOtherColoursHasItsOwnPalette() throws {
    let encoder = try AnimationFormat.gif.encoder(size)
    _ = try encoder.encode(picture(0))
    let own = try #require(try encoder.encode(picture(100, except: 0..<10)))
    #expect(own.held(for: 1)[17] == 0x81)
    // A black pixel needs no table.
    let next = try picture(100, except: 0..<10)
    let start = next.plane(0).start
    for channel in 60..<63 { start[channel] = 0 }
    #expect(try encoder.encode(next)?.held(for: 1)[17] == 0)
  }

  @Test func webPHasItsHoldInMilliseconds() throws {
    let encoder = try AnimationFormat.webp.encoder(size)
    let first = try #require(try encoder.encode(picture(0))).held(for: 0x01_02_03)
    let bodyBytes = first.count - 8
    #expect(Array(first[..<8]) == Array("ANMF".utf8) + [UInt8(bodyBytes & 0xFF), UInt8(bodyBytes >> 8), 0, 0])
    #expect(first[8..<24] == [0, 0, 0, 0, 0, 0, 23, 0, 0, 16, 0, 0, 3, 2, 1, 2])
    #expect(encoder.head(pictureBytes: 0)[20] == 0x02)
    // A block: positions are even, and stored in pairs of pixels.
    let second = try #require(try encoder.encode(picture(0, except: 24 * 9 + 17..<24 * 9 + 18))).held(for: 11)
    #expect(second[8..<24] == [8, 0, 0, 4, 0, 0, 7, 0, 0, 7, 0, 0, 11, 0, 0, 2])
    _ = try encoder.unchanged()
    let head = encoder.head(pictureBytes: 1_000)
    #expect(Array(head[..<8]) == Array("RIFF".utf8) + [0x28, 4, 0, 0])
    #expect(head[20] == 0x12)
  }

  /// Browsers show a picture of 10 ms for 100 ms.
  @Test(arguments: [
    (AnimationFormat.gif, Int64(1), [Int64(1)]), (.gif, 65_535, [65_535]), (.gif, 65_536, [65_534, 2]),
    (.gif, 65_537, [65_535, 2]), (.gif, 65_538, [65_535, 3]), (.gif, 131_070, [65_535, 65_535]),
    (.gif, 131_071, [65_535, 65_534, 2]), (.webp, 16_777_215, [16_777_215]), (.webp, 16_777_216, [16_777_205, 11]),
    (.webp, 16_777_226, [16_777_215, 11]), (.webp, 33_554_431, [16_777_215, 16_777_205, 11]),
  ])
  func noPieceOfALongHoldIsTooShort(format: AnimationFormat, hold: Int64, pieces: [Int64]) {
    #expect(format.pieces(of: hold) == pieces)
  }

  @Test func missingEncoderIsNamed() {
    #expect(throws: MissingEncoder(name: "libnone")) { _ = try ImageFile.encoder(named: "libnone") }
    let text = "\(MissingEncoder(name: "libnone"))"
    #expect(text.contains("libnone") && text.contains("write a GIF or an MP4"))
  }
}
