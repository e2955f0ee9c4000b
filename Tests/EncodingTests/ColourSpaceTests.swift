import CFFmpeg
import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import FrameBatches

/// Pictures of the colour spaces that a PNG states in numbers (cICP, gAMA, cHRM) become sRGB. Expected values are computed by hand
/// from ITU-R BT.2100, BT.2408 and BT.2087.
@Suite struct ColourSpaceTests {
  /// The 16-bit value of a luminance in cd/m² (SMPTE ST 2084).
  private static func pq(_ luminance: Double) -> Int {
    let root = pow(luminance / 10_000, 0.1593017578125)
    return Int((pow((0.8359375 + 18.8515625 * root) / (1 + 18.6875 * root), 78.84375) * 65_535).rounded())
  }

  private static func colours(of file: [UInt8]) -> (colours: ImageColours, notes: [String]) {
    var notes: [String] = []
    let colours = ImageColours(ofPNG: file, notes: &notes)
    return (colours, notes)
  }

  /// Returns the pixels in sRGB; nil if the file's colours are shown as they are.
  private static func converted(_ file: [UInt8]) throws -> [[UInt8]]? {
    guard case .other(let space) = colours(of: file).colours else { return nil }
    let picture = try ImageCodec(.png, limits: Limits(), nil).decode(PNGChunks.essential(of: file).file)
    let result = try ColourSpaceConverter().converted(picture, from: space, PictureConverter())
    let (start, stride) = result.plane(0)
    let size = result.format == AV_PIX_FMT_RGBA ? 4 : 3
    return (0..<result.height).flatMap { row in
      (0..<result.width).map { Array(UnsafeBufferPointer(start: start + row * stride + size * $0, count: size)) }
    }
  }

  private static func rgb(_ colours: [[Int]], depth: Int = 16, _ chunks: (String, [UInt8])...) -> [UInt8] {
    PNGImage.file(
      width: colours.count, height: 1, depth: depth, kind: 2, samples: colours.flatMap { $0 }, chunks: chunks)
  }

  private static func isNear(_ found: [[UInt8]]?, _ expected: [[Int]]) -> Bool {
    guard let found, found.count == expected.count else { return false }
    return zip(found.joined(), expected.joined()).allSatisfy { abs(Int($0) - $1) <= 1 }
  }

  /// The share of 26 of 203 cd/m² is 0.128, which is 100 in sRGB.
  @Test func perceptualQuantisationShowsReferenceWhiteAsWhite() throws {
    let greys = [0, 26, 203, 1_000, 10_000].map { Array(repeating: Self.pq($0), count: 3) }
    let file = Self.rgb(greys, ("cICP", [9, 16, 0, 1]))
    #expect(try Self.converted(file) == [0, 100, 255, 255, 255].map { Array(repeating: $0, count: 3) })
    // 8 bits have no nearer value.
    let byte = Self.rgb([[148, 148, 148]], depth: 8, ("cICP", [9, 16, 0, 1]))
    #expect(try Self.converted(byte) == [[255, 255, 255]])
    #expect(ColourSpace(.pq, .sRGB, isFullRange: true)?.note?.contains("(PQ)") == true)
  }

  /// Light of 0.3, 0.4, 0.2 in BT.2020 is 0.2486, 0.4141, 0.1780 in BT.709. A colour outside BT.709 is clipped.
  @Test func coloursOfBT2020BecomeThoseOfSRGB() throws {
    let file = Self.rgb(
      [[Self.pq(60.9), Self.pq(81.2), Self.pq(40.6)], [Self.pq(203), 0, 0], [0, Self.pq(203), 0]],
      ("cICP", [9, 16, 0, 1]))
    #expect(Self.isNear(try Self.converted(file), [[137, 172, 117], [255, 0, 0], [0, 255, 0]]))
  }

  /// Half the signal is a twelfth of the scene's light: its power of 1.2, times 1000/203, is 0.2497.
  @Test func hybridLogGammaShowsReferenceWhiteAsWhite() throws {
    let greys = [0, 32_768, 49_151, 65_535].map { [$0, $0, $0] }
    let file = Self.rgb(greys, ("cICP", [9, 18, 0, 1]))
    #expect(Self.isNear(try Self.converted(file), [[0, 0, 0], [137, 137, 137], [255, 255, 255], [255, 255, 255]]))
  }

  /// zscale (zimg) is a judge of its own.
  @Test func perceptualQuantisationIsConvertedAsByZimg() throws {
    let levels = [0.0, 1, 5, 26, 60, 120, 203, 400]
    let colours = levels.flatMap { red in levels.flatMap { green in levels.map { [red, green, $0] } } }
    let scratch = try ScratchDirectory()
    let samples = colours.map { $0.map(Self.pq) }
    try scratch.file("wide.rgb", samples.joined().flatMap { PNGImage.number($0, 2) })
    let filters =
      "format=gbrp16,zscale=min=gbr:pin=bt2020:tin=smpte2084:rin=full:npl=203:m=gbr:p=bt709:t=iec61966-2-1:r=full,"
      + "format=gbrp,format=rgb24"
    let judged = try Tool.output(
      "ffmpeg",
      [
        "-v", "error", "-f", "rawvideo", "-pix_fmt", "rgb48be", "-s", "\(colours.count)x1", "-i",
        scratch.path("wide.rgb"), "-vf", filters, "-f", "rawvideo", "-",
      ])
    let expected = stride(from: 0, to: judged.count, by: 3).map { at in (0..<3).map { Int(judged[at + $0]) } }
    #expect(expected.count == 512)
    #expect(Self.isNear(try Self.converted(Self.rgb(samples, ("cICP", [9, 16, 0, 1]))), expected))
  }

  @Test func linearLightAndOldGammasAreApplied() throws {
    // 55 of 255 is 0.2157, which is 128 in sRGB.
    let linear = Self.rgb([[0, 55, 255]], depth: 8, ("gAMA", PNGImage.number(100_000, 4)))
    #expect(try Self.converted(linear) == [[0, 128, 255]])
    // (128/255)^1.8 is 0.2892, the gamma of old Macintoshes.
    let macintosh = Self.rgb([[0, 128, 255]], depth: 8, ("gAMA", PNGImage.number(55_556, 4)))
    #expect(try Self.converted(macintosh) == [[0, 146, 255]])
    let grey = PNGImage.file(
      width: 2, height: 1, depth: 16, kind: 4, samples: [14_135, 65_535, 65_535, 32_768],
      chunks: [("gAMA", PNGImage.number(100_000, 4))])
    #expect(try Self.converted(grey) == [[128, 128, 128, 255], [255, 255, 255, 128]])
    let narrow = Self.rgb([[16, 235, 255]], depth: 8, ("cICP", [1, 13, 0, 0]))
    #expect(try Self.converted(narrow) == [[0, 255, 255]])
  }

  private static func chromaticities(_ values: Int...) -> (String, [UInt8]) {
    ("cHRM", values.flatMap { PNGImage.number($0, 4) })
  }

  private static let sRGB = chromaticities(31_270, 32_900, 64_000, 33_000, 30_000, 60_000, 15_000, 6_000)
  private static let displayP3 = chromaticities(31_270, 32_900, 68_000, 32_000, 26_500, 69_000, 15_000, 6_000)

  @Test func descriptionsOfSRGBChangeNothing() {
    let gamma = ("gAMA", PNGImage.number(45_455, 4))
    for chunks in [
      [gamma], [gamma, Self.sRGB], [Self.displayP3], [("gAMA", PNGImage.number(50_994, 4)), Self.sRGB],
      [("sRGB", [0]), ("gAMA", PNGImage.number(100_000, 4)), Self.displayP3],
      [("iCCP", [65, 0, 0]), ("gAMA", PNGImage.number(100_000, 4))],
    ] {
      let (colours, notes) = Self.colours(
        of: PNGImage.file(
          width: 1, height: 1, depth: 8, kind: 2, samples: [1, 2, 3], chunks: chunks))
      #expect(colours == .profile && notes == [], "\(chunks)")
    }
    for description: [UInt8] in [[1, 13, 0, 1], [1, 1, 0, 1]] {
      let file = Self.rgb([[1, 2, 3]], depth: 8, ("gAMA", PNGImage.number(100_000, 4)), ("cICP", description))
      #expect(Self.colours(of: file).colours == .standard)
    }
  }

  /// P3's (234, 51, 35) is the red of sRGB.
  @Test func displayP3IsConvertedHoweverItIsStated() throws {
    let colours = [[234, 51, 35], [128, 128, 128]]
    for chunks in [[("cICP", [12, 13, 0, 1])], [("gAMA", PNGImage.number(45_455, 4)), Self.displayP3]] {
      let file = PNGImage.file(
        width: 2, height: 1, depth: 8, kind: 2, samples: colours.flatMap { $0 }, chunks: chunks)
      #expect(Self.isNear(try Self.converted(file), [[255, 0, 0], [128, 128, 128]]), "\(chunks)")
    }
  }

  private func picture(_ file: [UInt8]) throws -> (bytes: [UInt8], notes: [String]) {
    let look = FrameComposition(content: .image(nil), masks: .none)
    let decoded = try PictureDecoder(limits: Limits()).picture(from: [file], look, into: nil)
    return (try decoded.picture.bytes, decoded.notes)
  }

  /// The fixture's charts have the same pixels; one has a profile of Display P3.
  @Test func codePointsHavePrecedenceOverAProfile() throws {
    let profiled = try Fixture("wide-colour").bytes("p3.png")
    let untagged = try picture(Fixture("wide-colour").bytes("untagged.png"))
    let standard = try picture(PNGImage.inserting([("cICP", [1, 13, 0, 1])], into: profiled))
    #expect(standard.bytes == untagged.bytes && standard.notes == [])
    let (byProfile, byCode) = try (
      picture(profiled), picture(PNGImage.inserting([("cICP", [12, 13, 0, 1])], into: profiled))
    )
    #expect(zip(byProfile.bytes, byCode.bytes).allSatisfy { abs(Int($0) - Int($1)) <= 2 })
    #expect(byCode.bytes != untagged.bytes)
    // A damaged description is ignored, with a note.
    var damaged = PNGImage.inserting([("cICP", [1, 13, 0, 1])], into: profiled)
    damaged[41] ^= 1
    let outcome = try picture(damaged)
    #expect(outcome.bytes == byProfile.bytes)
    #expect(outcome.notes == ["shown without its cICP chunk, which is damaged or not supported"])
  }

  @Test func highDynamicRangeIsNoted() throws {
    let white = Self.pq(203)
    let outcome = try picture(Self.rgb([[white, white, white], [0, 0, 0]], ("cICP", [9, 16, 0, 1])))
    #expect(outcome.notes == ["shown without its high dynamic range (PQ): light above 203 cd/m² is white"])
  }

  @Test func impossibleColoursAreIgnoredWithANote() throws {
    let gamma = ("gAMA", PNGImage.number(45_455, 4))
    let impossible: [[(String, [UInt8])]] = [
      [("gAMA", PNGImage.number(0, 4))], [("gAMA", PNGImage.number(1, 4))], [("gAMA", .init(repeating: 255, count: 4))],
      [("gAMA", [])], [("gAMA", [0, 1])], [gamma, ("cHRM", [])], [gamma, ("cHRM", .init(repeating: 0, count: 32))],
      [gamma, ("cHRM", .init(repeating: 255, count: 32))],
      // White without luminance, all colours on one line, white outside of the triangle, two equal colours.
      [gamma, Self.chromaticities(31_270, 0, 64_000, 33_000, 30_000, 60_000, 15_000, 6_000)],
      [gamma, Self.chromaticities(31_270, 32_900, 10_000, 10_000, 20_000, 20_000, 30_000, 30_000)],
      [gamma, Self.chromaticities(70_000, 20_000, 64_000, 33_000, 30_000, 60_000, 15_000, 6_000)],
      [gamma, Self.chromaticities(31_270, 32_900, 64_000, 33_000, 64_000, 33_000, 15_000, 6_000)],
      [("cICP", [])], [("cICP", [9, 99, 0, 1])], [("cICP", [99, 16, 0, 1])], [("cICP", [9, 16, 1, 1])],
      [("cICP", [9, 16, 0, 2])], [("cICP", [2, 2, 0, 1])], [("cICP", [9, 16, 0, 1, 0])],
    ]
    let plain = try picture(Self.rgb([[1, 200, 3], [40, 50, 60]], depth: 8))
    for chunks in impossible {
      let file = PNGImage.file(
        width: 2, height: 1, depth: 8, kind: 2, samples: [1, 200, 3, 40, 50, 60], chunks: chunks)
      let outcome = try picture(file)
      #expect(outcome.bytes == plain.bytes && outcome.notes.count == 1, "\(chunks)")
    }
    var random = Random(seed: 41)
    for _ in 0..<Extent.of(2_000, full: 100_000) {
      func bytes(_ count: Int, _ highest: Int64) -> [UInt8] { (0..<count).map { _ in UInt8(random.int(0...highest)) } }
      // Numbers of a plausible size in half of the cases.
      let body = (0..<8).flatMap { _ in random.int(0...1) == 0 ? [0, 0] + bytes(2, 255) : bytes(4, 255) }
      let chunks = [("cICP", bytes(4, 24)), ("gAMA", [0, 0] + bytes(2, 255)), ("cHRM", body)]
      let file = PNGImage.file(
        width: 1, height: 1, depth: 16, kind: 2, samples: [1, 20_000, 65_535],
        chunks: Array(chunks.dropFirst(Int(random.int(0...1)))))
      _ = try Self.converted(file)
    }
  }
}
