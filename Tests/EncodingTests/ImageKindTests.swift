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

  private static let brands: [([String], ImageKind?)] = [
    (["avif", "\0\0\0\0", "mif1"], .avif), (["avis"], .avif), (["mif1", "\0\0\0\0", "heic"], .heic),
    (["mif1", "\0\0\0\0", "miaf", "avif"], .avif), (["heix"], .heic), (["isom", "\0\0\0\0", "avif"], nil),
  ]

  @Test func modernAndOldFormatsAreKnownByTheirFirstBytes() {
    let bitmap = Array("BM".utf8) + [UInt8](repeating: 0, count: 12) + [40, 0, 0, 0]
    let files: [([UInt8], ImageKind?)] = [
      (bitmap, .bmp), (Array("BM and no bitmap at all".utf8), nil), (Array("GIF89a".utf8), .gif),
      (Array("GIF87a".utf8), .gif), (Array("GIF8".utf8), nil), (Array("II*\0".utf8), .tiff),
      (Array("MM\0*".utf8), .tiff),
      ([0x49, 0x49, 43, 0], .tiff), ([0xFF, 0x0A, 1], .jpegXL), (Array("\0\0\0\u{0C}JXL \r\n".utf8), .jpegXL),
      (Array("\0\0\0\u{18}ftypisom".utf8), nil), (Array("\0\0\0\0ftyp".utf8), nil),
    ]
    for (file, kind) in files { #expect(ImageKind(of: file) == kind, "\(file)") }
    for (brands, kind) in Self.brands {
      let size = UInt8(8 + 4 * brands.count)
      let file = [0, 0, 0, size] + Array(("ftyp" + brands.joined()).utf8) + Array("avif".utf8)
      #expect(ImageKind(of: file) == kind, "\(brands)")
    }
  }

  /// The sizes are those before cropping and turning, except for JPEG XL, whose decoder turns.
  @Test(arguments: [
    ("usual.heic", 96, 64), ("odd.heic", 95, 63), ("phone.heic", 144, 96), ("grid.avif", 192, 128),
    ("turned.avif", 96, 64), ("cropped.avif", 96, 64), ("pq.avif", 64, 64), ("lossy.jxl", 96, 64),
    ("turned.jxl", 64, 96),
  ])
  func sizeOfAModernImageIsReadFromItsHeader(name: String, width: Int, height: Int) throws {
    let file = try Fixture("modern").bytes(name)
    let kind = try #require(ImageKind(of: file))
    #expect(kind.size(of: file) == PixelSize(width: width, height: height))
    for length in 0..<min(file.count, 700) { _ = kind.size(of: Array(file.prefix(length))) }
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
