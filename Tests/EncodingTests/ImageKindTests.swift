import TestSupport
import Testing

@testable import Encoding
@testable import FrameBatches

@Suite struct ImageKindTests {
  @Test func kindAndSizeAreReadFromTheHeader() throws {
    let jpeg = try Fixture("odd-size").bytes("1767859512340.jpg")
    #expect(ImageKind(of: jpeg) == .jpeg)
    #expect(try #require(ImageKind.jpeg.size(of: jpeg)) == PixelSize(width: 181, height: 321))
    let png = try Fixture("colour-bars").bytes("1767859512340.png")
    #expect(ImageKind(of: png) == .png)
    #expect(try #require(ImageKind.png.size(of: png)) == PixelSize(width: 256, height: 192))
    #expect(ImageKind(of: []) == nil)
    #expect(ImageKind(of: Array("RIFFxxxxWEBP".utf8)) == .webp)
    #expect(ImageKind(of: Array("RIFFxxxxWAVE".utf8)) == nil)
    #expect(ImageKind.webp.size(of: Array("RIFFxxxxWEBPVP8 ".utf8)) == nil)
  }

  @Test func truncatedHeaderHasNoSize() throws {
    for (kind, file) in [
      (ImageKind.jpeg, try Fixture("odd-size").bytes("1767859512340.jpg")),
      (.png, try Fixture("colour-bars").bytes("1767859512340.png")),
    ] {
      for length in 0..<24 { _ = kind.size(of: Array(file.prefix(length))) }
    }
    #expect(ImageKind.jpeg.size(of: [0xFF, 0xD8, 0xFF, 0xE0, 0, 0, 0xFF, 0xDA, 0, 0, 0, 0]) == nil)
  }
}
