import TestSupport
import Testing

@testable import Encoding
@testable import FrameBatches

/// TIFFs whose tags or strips lie: libavcodec would show memory that nobody has written, or other colours.
@Suite struct TIFFStripsTests {
  private let decoder = PictureDecoder(limits: Limits())

  init() { FFmpegLog.silence() }

  private func picture(_ file: [UInt8]) throws -> [UInt8] {
    try decoder.picture(from: [file], FrameComposition(content: .image(nil), masks: .none)).picture.bytes
  }

  private func reason(_ file: [UInt8]) -> String? {
    do {
      _ = try picture(file)
      return nil
    } catch {
      return (error as? RefusedPicture)?.refusal.text ?? "another error: \(error)"
    }
  }

  private static func number(_ value: Int, _ count: Int = 4) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }

  /// Returns a zlib stream with one stored block.
  private static func deflated(_ bytes: [UInt8]) -> [UInt8] {
    let sums = bytes.reduce((low: 1, high: 0)) { sums, byte in
      let low = (sums.low + Int(byte)) % 65_521
      return (low, (sums.high + low) % 65_521)
    }
    return [0x78, 1, 1] + number(bytes.count, 2) + number(~bytes.count, 2) + bytes
      + number(sums.high << 16 | sums.low).reversed()
  }

  /// Returns a grey TIFF of 16×8 pixels.
  ///
  /// - Parameters:
  ///   - strips: the bytes of each strip.
  ///   - changes: tags of one number that are added or replaced; nil for tags that are left out.
  private static func file(
    _ strips: [[UInt8]], rows: Int, compression: Int = 1, changes: [Int: Int?] = [:], sizes: [Int]? = nil
  ) -> [UInt8] {
    var data: [UInt8] = []
    let starts = strips.map { strip in
      defer { data += strip }
      return 8 + data.count
    }
    var tags: [Int: [Int]] = [
      256: [16], 257: [8], 258: [8], 259: [compression], 262: [1], 273: starts, 278: [rows],
      279: sizes ?? strips.map(\.count),
    ]
    for (tag, value) in changes { tags[tag] = value.map { [$0] } }
    var directory = number(tags.count, 2)
    var lists: [UInt8] = []
    let listStart = 8 + data.count + 2 + 12 * tags.count + 4
    for (tag, values) in tags.sorted(by: { $0.key < $1.key }) {
      directory += number(tag, 2) + [4, 0] + number(values.count)
      directory += number(values.count == 1 ? values[0] : listStart + lists.count)
      if values.count > 1 { lists += values.flatMap { number($0) } }
    }
    return Array("II".utf8) + [42, 0] + number(8 + data.count) + data + directory + number(0) + lists
  }

  private static let pixels = (0..<128).map { UInt8(2 * $0) }

  @Test func stripsInOneOrMorePartsAreTheSame() throws {
    let whole = try picture(Self.file([Self.pixels], rows: 8))
    let parts = stride(from: 0, to: 128, by: 48).map { Array(Self.pixels[$0..<min($0 + 48, 128)]) }
    #expect(try picture(Self.file(parts, rows: 3)) == whole)
    #expect(try picture(Self.file(parts.map(Self.deflated), rows: 3, compression: 8)) == whole)
    #expect(try picture(Self.file([Self.deflated(Self.pixels)], rows: 8, compression: 32_946)) == whole)
    // No number of rows, and numbers that stand for all rows.
    for rows in [nil, 0, 1 << 20, 0xFFFF_FFFF] {
      #expect(try picture(Self.file([Self.pixels], rows: 8, changes: [278: rows])) == whole)
    }
  }

  /// zlib reports no error at the end of such a stream.
  @Test func deflatedStripThatEndsEarlyIsRefused() {
    for count in [0, 1, 112, 127, 129] {
      let strip = Self.deflated(Array((Self.pixels + [0]).prefix(count)))
      #expect(reason(Self.file([strip], rows: 8, compression: 8)) == "invalid data", "\(count) bytes")
    }
    var broken = Self.deflated(Self.pixels)
    broken[broken.count - 1] ^= 1
    #expect(reason(Self.file([broken], rows: 8, compression: 8)) == "invalid data")
  }

  @Test func stripsThatAreMissingOrOverlapAreRefused() {
    let halves = [Array(Self.pixels[..<64]), Array(Self.pixels[64...])]
    #expect(reason(Self.file(halves, rows: 4)) == nil)
    let lies = [
      Self.file(halves, rows: 3), Self.file(halves, rows: 8), Self.file([halves[0]], rows: 4),
      Self.file(halves, rows: 4, sizes: [64]), Self.file(halves, rows: 4, sizes: [64, 0]),
      Self.file(halves, rows: 4, sizes: [64, 60]), Self.file(halves, rows: 4, sizes: [64, 1 << 20]),
      Self.file(halves, rows: 4, sizes: [64, 0xFFFF_FFFF]), Self.file([Self.pixels], rows: 8, changes: [273: 1 << 31]),
      Self.file([Self.pixels], rows: 8, changes: [273: nil]), Self.file([Self.pixels], rows: 8, changes: [279: nil]),
    ]
    for (index, lie) in lies.enumerated() { #expect(reason(lie) == "invalid data", "\(index)") }
    // Each strip is the whole file.
    let file = Self.file([[UInt8]](repeating: [0x80], count: 8), rows: 1, sizes: [Int](repeating: 100, count: 8))
    #expect(reason(file) == "invalid data")
  }

  @Test func kindThatLibavcodecWouldMisreadIsRefused() {
    // White is 0, with alpha; a palette that is missing, or of 16 bits; planes; tiles; floating point.
    let changes: [[Int: Int?]] = [
      [256: 8, 262: 0, 277: 2], [262: 3], [256: 8, 258: 16, 262: 3, 320: 0], [256: 8, 277: 2, 284: 2], [322: 16],
      [339: 3], [262: 6], [262: nil],
    ]
    for change in changes {
      let found = reason(Self.file([Self.pixels], rows: 8, changes: change))
      #expect(found?.hasPrefix("a TIFF of a rare kind") == true, "\(change): \(found ?? "shown")")
    }
  }

  @Test func paletteOfAGreyPictureIsIgnored() throws {
    let plain = Self.file([Self.pixels], rows: 8)
    #expect(try picture(Self.file([Self.pixels], rows: 8, changes: [320: 0])) == picture(plain))
  }
}
