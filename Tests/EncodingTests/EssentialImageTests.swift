import TestSupport
import Testing

@testable import Encoding
@testable import FrameBatches

/// The worker strips image files to the parts that form the picture. Other parts can rotate pictures or need gigabytes
/// of memory.
@Suite struct EssentialImageTests {
  private func segment(_ marker: UInt8, _ text: String) -> [UInt8] {
    [0xFF, marker, 0, UInt8(text.utf8.count + 2)] + Array(text.utf8)
  }

  /// At each position: at the start, between scans, at the end.
  @Test(
    arguments: [
      (0xFE, "Metasoft MJPEG Codec\0"), (0xFE, "CS=ITU601\0"), (0xFE, ""), (0xE1, "Exif\0\0II*\0"), (0xE0, "AVI1"),
      (0xE2, "MPF\0"), (0xF0, "x"),
    ] as [(UInt8, String)])
  func strippedJPEGHasOnlyThePicture(marker: UInt8, text: String) throws {
    let scratch = try ScratchDirectory()
    let progressive = scratch.path("p.jpg")
    let baseline = Fixture("exact-1fps").path + "/0000.jpg"
    // Pillow writes the progressive JPEG, because libavcodec writes only baseline.
    try Tool.output(
      Tool.python,
      [
        "-c", "import sys; from PIL import Image; Image.open(sys.argv[1]).save(sys.argv[2], progressive=True)",
        baseline, progressive,
      ])
    for path in [baseline, progressive] {
      let good = try Fixture(file: path).bytes()
      let parts = try #require(JPEGFile(good))
      let plain = parts.essential
      #expect(parts.segments.count { $0.marker == 0xDA } > (path == baseline ? 0 : 3))
      for place in parts.segments.map(\.range.lowerBound) {
        let stuffed = Array(good[..<place] + segment(marker, text) + good[place...])
        #expect(try #require(JPEGFile(stuffed)).essential == plain)
      }
      for cut in 0..<min(good.count, 900) { _ = JPEGFile(Array(good[..<cut]))?.essential }
      // Marker segments that a decoder would either skip or interpret.
      let hidden = Array(good[..<2] + [0xFF, 0x02] + segment(marker, text) + good[2...])
      #expect(JPEGFile(hidden) == nil)
    }
  }

  @Test func scansOfAJPEGAreLimited() throws {
    let good = try Fixture("exact-1fps").bytes("0000.jpg")
    let parts = try #require(JPEGFile(good))
    let scan = try #require(parts.segments.first { $0.marker == 0xDA })
    #expect(parts.reasonToRefuse == nil)
    let scans = Array(repeating: good[scan.range], count: 500).joined()
    #expect(
      JPEGFile(Array(good[..<scan.range.lowerBound] + scans + good[scan.range.lowerBound...]))?.reasonToRefuse
        == "more than 500 scans")
  }

  private func chunk(_ name: String, _ count: Int) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: count >> (24 - 8 * $0)) } + Array(name.utf8)
      + Array(repeating: 65, count: count) + [0, 0, 0, 0]
  }

  @Test func strippedPNGHasOnlyThePicture() throws {
    let good = try Fixture("wide-colour").bytes("p3.png")
    let stuffed = ["zTXt", "iTXt", "tEXt", "eXIf", "gAMA", "iCCQ"].flatMap { chunk($0, 3_000) }
    let essential = PNGChunks.essential(of: Array(good[..<33] + stuffed + good[33...]))
    #expect(essential.file == good && essential.lostProfile == nil)
    #expect(PNGChunks.essential(of: good).file == good)
    let large = PNGChunks.essential(of: Array(good[..<33] + chunk("iCCP", 70_000) + good[33...]))
    #expect(large.file == good && large.lostProfile == "too large")
    let twice = try #require(good.indices.first { good[$0...].starts(with: "IDAT".utf8) }) - 4
    let second = PNGChunks.essential(of: Array(good[..<twice] + chunk("iCCP", 9) + good[twice...]))
    #expect(second.file == good && second.lostProfile == nil)
    for cut in [9, 20, 40, good.count - 3] {
      #expect(PNGChunks.essential(of: Array(good[..<cut])).file == Array(good[..<cut]))
    }
  }

  @Test func strippedWebPHasOnlyThePicture() throws {
    let good = try Fixture("wide-colour").bytes("p3.webp")
    let extra = Array("EXIF".utf8) + [2, 0, 0, 0, 1, 1] + Array("XMP ".utf8) + [1, 0, 0, 0, 1, 0]
    var stuffed = good + extra
    stuffed[20] |= 0b1100
    #expect(WebPChunks.still(of: stuffed) == good)
    #expect(WebPChunks.still(of: good) == good)
    for cut in 0..<good.count { _ = WebPChunks.still(of: Array(good[..<cut])) }
  }
}
