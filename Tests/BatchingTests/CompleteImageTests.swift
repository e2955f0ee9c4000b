import TestSupport
import Testing

@testable import Batching
@testable import FrameBatches
@testable import WorkQueues

@Suite struct CompleteImageTests {
  private static let png: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
  private static let pngEnd: [UInt8] = [0, 0, 0, 0, 0x49, 0x45, 0x4E, 0x44, 0xAE, 0x42, 0x60, 0x82]

  private static func webp(says size: UInt8, has count: Int) -> [UInt8] {
    Array("RIFF".utf8) + [size, 0, 0, 0] + Array("WEBPVP8 ".utf8) + [UInt8](repeating: 0, count: count - 8)
  }

  @Test(
    arguments: [
      ([0xFF, 0xD8, 0xFF, 0xE0, 1, 0xFF, 0xD9], true),
      ([0xFF, 0xD8, 0xFF, 0xD9], true),
      ([0xFF, 0xD8, 0xFF, 0xE0, 1, 0xFF, 0xD9, 0], false),
      ([0xFF, 0xD8, 0xFF], false),
      ([], false),
      ([0xFF], false),
      (png + pngEnd, true),
      (png + pngEnd.dropLast(), false),
      (png, false),
      (webp(says: 20, has: 20), true),
      (webp(says: 21, has: 21), true),
      (webp(says: 21, has: 22), true),
      (webp(says: 20, has: 21), false),
      (webp(says: 22, has: 20), false),
      (Array("RIFF\u{4}\0\0\0WEBP".utf8), true),
      (Array("hello, this is text".utf8), false),
    ] as [([UInt8], Bool)])
  func imageIsCompleteIfItEndsAsItsFormatRequires(bytes: [UInt8], isComplete: Bool) {
    #expect((CompleteImage.fault(in: bytes) == nil) == isComplete)
  }

  private static let bitmap: [UInt8] =
    // 4×-2 pixels of 24 bits behind 54 bytes.
    Array("BM".utf8) + [
      78, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 40, 0, 0, 0, 4, 0, 0, 0, 0xFE, 0xFF, 0xFF, 0xFF, 1, 0, 24, 0,
    ]
    + [UInt8](repeating: 0, count: 48)

  @Test(
    arguments: [
      (Array("GIF89a.;".utf8), true), (Array("GIF89a.".utf8), false), (bitmap, true), (Array(bitmap.dropLast()), false),
      ([0x49, 0x49, 42, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0], true), ([0x49, 0x49, 42, 0, 0, 0, 0, 0, 0, 0, 0, 0], false),
      ([0x4D, 0x4D, 0, 42, 0, 0, 0, 90, 0, 0], false), ([0xFF, 0x0A, 1], true),
      (Array("\0\0\0\u{10}ftypheic\0\0\0\0\0\0\0\u{9}mdat.".utf8), true),
      (Array("\0\0\0\u{10}ftypheic\0\0\0\0\0\0\0\u{A}mdat.".utf8), false),
      (Array("\0\0\0\u{10}ftypavif\0\0\0\0\0\0\0\0mdat.".utf8), true),
      (Array("\0\0\0\u{10}ftypavif\0\0\0\0mda".utf8), false), (Array("\0\0\0\u{10}ftypavif".utf8), false),
    ] as [([UInt8], Bool)])
  func imageOfAnotherFormatIsCompleteIfItsHeadersSaySo(bytes: [UInt8], isComplete: Bool) {
    #expect((CompleteImage.fault(in: bytes) == nil) == isComplete)
  }

  @Test func modernFixturesAreComplete() throws {
    for name in try names(in: Fixture("modern").path) {
      let file = try Fixture("modern").bytes(name)
      #expect(CompleteImage.fault(in: file) == nil, "\(name)")
      guard !name.hasSuffix(".jxl") else { continue }
      #expect(CompleteImage.fault(in: Array(file.dropLast())) != nil, "\(name)")
    }
  }
}
