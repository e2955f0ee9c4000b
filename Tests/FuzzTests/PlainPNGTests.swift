import Foundation
import TestSupport
import Testing

@testable import FuzzTargets

/// The decoder of plain PNGs accepts whole and ordinary files, and decodes them to the pixels of libavcodec. `PNGFuzzing` compares
/// them, and ends the process at a difference.
@Suite struct PlainPNGTests {
  private static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
  private static let end = chunk("IEND", [])

  private static func number(_ value: Int, _ bytes: Int = 4) -> [UInt8] {
    (0..<bytes).map { UInt8(truncatingIfNeeded: value >> (8 * (bytes - 1 - $0))) }
  }

  /// The checksum is 0: see ``PictureFuzzing/withValidChecksums(_:)``.
  private static func chunk(_ name: String, _ body: [UInt8]) -> [UInt8] {
    number(body.count) + Array(name.utf8) + body + [0, 0, 0, 0]
  }

  private static func header(_ width: Int, _ height: Int, _ kind: [UInt8]) -> [UInt8] {
    chunk("IHDR", number(width) + number(height) + kind)
  }

  private static func isPlain(_ parts: [UInt8]...) -> Bool {
    PNGFuzzing.isDecodedAsPlain(PictureFuzzing.withValidChecksums(signature + parts.joined()))
  }

  /// Random bytes are valid pixels behind each filter.
  private static func rows(_ width: Int, _ height: Int, _ size: Int, _ random: inout Random, _ filter: Int?) -> [UInt8]
  {
    (0..<height).flatMap { _ in
      [UInt8(filter ?? Int(random.int(0...4)))] + (0..<width * size).map { _ in UInt8(random.int(0...255)) }
    }
  }

  @Test(arguments: [3, 4], [0, 1, 2, 3, 4, nil] as [Int?])
  func rowsWithEachFilterAreDecodedAsByLibavcodec(size: Int, filter: Int?) {
    var random = Random(seed: 7)
    for (width, height) in [(1, 1), (1, 9), (2, 2), (3, 4), (5, 3), (17, 1), (16, 8), (31, 7), (333, 40)] {
      for _ in 0..<Extent.of(3, full: 100) {
        let data = PNGImage.stored(Self.rows(width, height, size, &random, filter))
        let header = Self.header(width, height, [8, size == 3 ? 2 : 6, 0, 0, 0])
        #expect(Self.isPlain(header, Self.chunk("IDAT", data), Self.end))
        // In two chunks, with text around them, which the worker removes.
        let cut = Int(random.int(1...Int64(data.count - 1)))
        let (first, second) = (Array(data[..<cut]), Array(data[cut...]))
        #expect(
          Self.isPlain(
            header, Self.chunk("tEXt", [1]), Self.chunk("IDAT", first), Self.chunk("IDAT", second), Self.end))
      }
    }
  }

  @Test func unusualFilesAreLeftToLibavcodec() {
    var random = Random(seed: 8)
    let pixels = Self.rows(9, 5, 3, &random, nil)
    let header = Self.header(9, 5, [8, 2, 0, 0, 0])
    let stream = PNGImage.stored(pixels)
    let data = Self.chunk("IDAT", stream)
    #expect(Self.isPlain(header, data, Self.end))
    let unusual: [[[UInt8]]] = [
      [header, data], [header, Self.end], [data, header, Self.end], [header, header, data, Self.end],
      [header, data, Self.end, [0]], [header, data, Self.end, Self.end], [header, data, Self.chunk("IEND", [0])],
      [header, Self.chunk("IDAT", []), data, Self.end], [header, data, Self.chunk("IDAT", []), Self.end],
      [header, data, Self.chunk("IDAT", [1]), Self.end], [header, Self.chunk("IDAT", stream + [0]), Self.end],
      [header, Self.chunk("IDAT", stream.dropLast()), Self.end],
      [header, Self.chunk("tRNS", .init(repeating: 0, count: 6)), data, Self.end],
      [header, Self.chunk("PLTE", [1, 2, 3]), data, Self.end],
      [header, data, Self.chunk("iCCP", [65, 0, 0]), Self.end],
      // More and fewer pixels than the header has, and an unknown filter.
      [header, Self.chunk("IDAT", PNGImage.stored(pixels + [0])), Self.end],
      [header, Self.chunk("IDAT", PNGImage.stored(pixels.dropLast())), Self.end],
      [header, Self.chunk("IDAT", PNGImage.stored([5] + pixels.dropFirst())), Self.end],
      [Self.header(9, 5, [8, 2, 0, 0, 1]), data, Self.end], [Self.header(9, 5, [8, 2, 1, 0, 0]), data, Self.end],
      [Self.header(9, 5, [8, 2, 0, 1, 0]), data, Self.end], [Self.header(27, 5, [8, 0, 0, 0, 0]), data, Self.end],
      [Self.header(0, 5, [8, 2, 0, 0, 0]), data, Self.end], [Self.header(9, 0, [8, 2, 0, 0, 0]), data, Self.end],
      // The header of zlib: a smaller window, a dictionary.
      [header, Self.chunk("IDAT", [0x18, 0x19] + stream.dropFirst(2)), Self.end],
      [header, Self.chunk("IDAT", [0x78, 0x20] + stream.dropFirst(2)), Self.end],
    ]
    for (index, parts) in unusual.enumerated() {
      #expect(!Self.isPlain(Array(parts.joined())), "\(index)")
    }
  }

  /// With the checksums of chunks as they are, and corrected.
  @Test func damagedFilesAreAcceptedOnlyIfLibavcodecAcceptsThem() throws {
    let untagged = try Fixture("wide-colour").bytes("untagged.png")
    // A damaged name of the colour profile's chunk makes it one that is removed, whatever its checksum.
    let withProfile = try Fixture("wide-colour").bytes("p3.png")
    var random = Random(seed: 9)
    let small =
      Self.signature + Self.header(3, 2, [8, 6, 0, 0, 0])
      + Self.chunk("IDAT", PNGImage.stored(Self.rows(3, 2, 4, &random, nil))) + Self.end
    for file in [PictureFuzzing.withValidChecksums(small), untagged, withProfile] {
      #expect(PNGFuzzing.isDecodedAsPlain(file))
      let places = stride(from: 0, to: file.count, by: max(1, file.count / Extent.of(300, full: 3_000)))
      for place in places {
        #expect(!PNGFuzzing.isDecodedAsPlain(Array(file[..<place])), "cut at \(place)")
        for bit in 0..<8 {
          var damaged = file
          damaged[place] ^= 1 << UInt8(bit)
          #expect(!PNGFuzzing.isDecodedAsPlain(damaged) || file == withProfile, "bit \(bit) of byte \(place)")
          PNGFuzzing.isDecodedAsPlain(PictureFuzzing.withValidChecksums(damaged))
        }
      }
    }
  }

  /// zlib refuses the stream, although its checksum and its length are right. PNGFuzzing compares the pixels.
  @Test func streamWithIncompleteHuffmanCodeIsDecoded() throws {
    let file = Fixture.root.appendingPathComponent("Fuzzing/regressions/png/incomplete-huffman-code")
    // The fuzzer corrects the checksums of its inputs, too.
    #expect(PNGFuzzing.isDecodedAsPlain(PictureFuzzing.withValidChecksums(Array(try Data(contentsOf: file)))))
  }

  /// Other programs' test files, below the directory BAD_IMAGES.
  @Test func filesOfOtherProgramsAreDecodedAsByLibavcodec() throws {
    guard let path = ProcessInfo.processInfo.environment["BAD_IMAGES"] else { return }
    let names = FileManager.default.subpaths(atPath: path) ?? []
    var accepted = 0
    for name in names {
      guard let data = FileManager.default.contents(atPath: "\(path)/\(name)") else { continue }
      if PNGFuzzing.isDecodedAsPlain(Array(data)) { accepted += 1 }
    }
    #expect(accepted > 10)
  }
}
