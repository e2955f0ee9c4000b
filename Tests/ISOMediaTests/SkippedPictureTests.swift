import CFFmpeg
import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import FrameBatches
@testable import ISOMedia

@Suite struct SkippedPictureTests {
  static let sizes = [
    PixelSize(width: 2, height: 2), PixelSize(width: 16, height: 16), PixelSize(width: 18, height: 34),
    PixelSize(width: 491, height: 1_065), PixelSize(width: 750, height: 1_334), PixelSize(width: 4_096, height: 16),
    PixelSize(width: 16, height: 4_096), PixelSize(width: 2_560, height: 1_440), PixelSize(width: 8_192, height: 4_320),
  ]

  /// Makes a picture that is unique for its seed. Its bands and blocks survive coding.
  private static func picture(_ size: PixelSize, seed: Int) throws -> Picture {
    let buffer = try FrameBuffer(width: size.width, height: size.height, format: AV_PIX_FMT_YUV420P)
    for plane in 0..<3 {
      let (start, stride) = buffer.plane(plane)
      let shift = plane == 0 ? 0 : 1
      for row in 0..<(size.height + shift) >> shift {
        for column in 0..<(size.width + shift) >> shift {
          start[row * stride + column] = UInt8((row / 8 * 31 + column / 8 * 17 + seed * 71 + plane * 40) % 200 + 20)
        }
      }
    }
    return try Picture(adopting: buffer)
  }

  private static func hold(_ number: Int) -> FrameHold {
    FrameHold(
      capture: Capture(source: "\(number).jpg", timeMs: Int64(number) * 5_000, width: 16, height: 16),
      status: .captured,
      startMs: Int64(number) * 5_000, holdMs: 5_000, opensSegment: number == 0, closingGapMs: nil)
  }

  /// Returns the pictures as stock ffmpeg decodes them, and their header fields.
  private func decoded(_ segment: EncodedSegment) throws -> (pictures: [String], numbers: [Int]) {
    let scratch = try ScratchDirectory()
    try scratch.file("film.mp4", segment.bytes)
    let hashes = try Tool.run(
      "ffmpeg",
      [
        "-v", "error", "-xerror", "-err_detect", "explode", "-i", scratch.path("film.mp4"), "-map", "0:v", "-fps_mode",
        "passthrough", "-f", "framemd5", "-",
      ])
    #expect(hashes.errors == "")
    let headers = try Tool.run(
      "ffmpeg",
      ["-i", scratch.path("film.mp4"), "-map", "0:v", "-c", "copy", "-bsf:v", "trace_headers", "-f", "null", "-"])
    return (
      String(decoding: hashes.output, as: UTF8.self).split(separator: "\n").filter { !$0.hasPrefix("#") }.compactMap {
        $0.split(separator: ",").last?.trimmingCharacters(in: .whitespaces)
      },
      headers.errors.split(separator: "\n").filter { $0.contains(" frame_num ") }.compactMap {
        $0.split(separator: "=").last.flatMap { Int($0.trimmingCharacters(in: .whitespaces)) }
      }
    )
  }

  private func segment(_ runs: [(frame: SourceFrame, samples: Int)]) throws -> EncodedSegment {
    var writer = SegmentWriter(first: runs[0].frame, settings: EncoderSettings(.balanced))
    for (number, run) in runs.enumerated() {
      let starts = (0..<run.samples).map { 450_000 * Int64($0) / Int64(run.samples) }
      try writer.show(run.frame, in: Self.hold(number), sampleStarts: starts)
    }
    return try writer.finish()
  }

  /// The largest size runs only in the full test, because ffmpeg decodes 64 pictures of each size.
  @Test(arguments: Extent.of(sizes.dropLast(), full: sizes[...])) func repeatsShowThePictureBeforeThem(size: PixelSize)
    throws
  {
    let pictures = try (0..<3).map { SourceFrame(try Self.picture(size, seed: $0)) }
    // More pictures than the picture number field can count.
    let runs = [(pictures[0], 40), (pictures[1], 1), (pictures[2], 20), (pictures[0], 3)]
    let segment = try segment(runs)
    #expect(runs.allSatisfy { $0.0.key == nil })
    let (shown, numbers) = try decoded(segment)
    let counts = [40, 1, 20, 3]
    try #require(shown.count == counts.reduce(0, +))
    var rest = shown[...]
    var different: [String] = []
    for count in counts {
      #expect(Set(rest.prefix(count)).count == 1)
      different += rest.prefix(1)
      rest = rest.dropFirst(count)
    }
    #expect(Set(different.prefix(3)).count == 3)
    #expect(numbers == shown.indices.map { $0 % 16 })
  }

  /// The size of a repeat hardly depends on the picture size.
  @Test(arguments: sizes) func aRepeatIsAFewDozenBytes(size: PixelSize) throws {
    let picture = SourceFrame(try Self.picture(size, seed: 0))
    let once = try segment([(picture, 1)]).bytes.count
    let often = try segment([(picture, 101)]).bytes.count
    // 1/16 bit for each macroblock, plus 4 bytes each for the length in the stream and in the size table.
    let macroblocks = (size.width + 15) / 16 * ((size.height + 15) / 16)
    #expect(often - once <= 100 * (24 + macroblocks / 120))
  }

  @Test func equalFrameIsCodedOnce() throws {
    let size = PixelSize(width: 180, height: 320)
    let frame = SourceFrame(try Self.picture(size, seed: 0))
    let first = try segment([(frame, 5)])
    let key = try #require(frame.key)
    // A cached frame is not decoded either.
    let remembered = SourceFrame(key, identity: "x") { throw Tool.Failure("decoded again") }
    #expect(try segment([(remembered, 5)]).bytes == first.bytes)
    let fresh = SourceFrame(try Self.picture(size, seed: 0))
    #expect(try segment([(fresh, 5)]).bytes == first.bytes)
    let other = SourceFrame(try Self.picture(size, seed: 1))
    #expect(try segment([(other, 5)]).bytes != first.bytes)
  }

  @Test func frameThatChangesIsDecodedAndEncoded() throws {
    let size = PixelSize(width: 180, height: 320)
    let (frame, other) = (SourceFrame(try Self.picture(size, seed: 0)), SourceFrame(try Self.picture(size, seed: 1)))
    _ = try segment([(frame, 5)])
    let remembered = SourceFrame(try #require(frame.key), identity: "x") { try Self.picture(size, seed: 0) }
    let fresh = try segment([(SourceFrame(try Self.picture(size, seed: 0)), 5), (other, 5)])
    #expect(try segment([(remembered, 5), (other, 5)]).bytes == fresh.bytes)
    #expect(remembered.isDecoded)
  }

  @Test func keyFrameCacheIsBounded() throws {
    func key(_ bytes: Int) -> KeyFrame {
      KeyFrame(
        width: 2, height: 2, codedWidth: 2, codedHeight: 2, notes: [],
        parameterSets: ParameterSets(sequence: [], picture: []),
        data: [UInt8](repeating: 0, count: bytes))
    }
    let memory = KeyFrameCache(capacity: 100_000)
    memory.remember(key(40_000), as: "a")
    memory.remember(key(40_000), as: "b")
    #expect(memory.recall("a") != nil)
    memory.remember(key(40_000), as: "c")
    #expect(memory.recall("b") == nil)
    #expect(memory.recall("a")?.data.count == 40_000)
    memory.remember(key(100_001), as: "d")
    #expect(memory.recall("d") == nil)
    memory.remember(key(40_000), as: "c")
    // The new entry replaces the old one of the same name.
    for _ in 0..<9 { memory.remember(key(50_000), as: "a") }
    #expect(memory.recall("a")?.data.count == 50_000)
    #expect(memory.recall("c")?.data.count == 40_000)
    memory.forget("a")
    #expect(memory.recall("a") == nil)
    // Each small entry has a minimum cost.
    for number in 0..<1_000 { memory.remember(key(1), as: "\(number)") }
    #expect((0..<1_000).count { memory.recall("\($0)") != nil } < 30)
  }

  @Test func streamsOfOtherKindsAreRefused() throws {
    let sets = try VideoEncoder(width: 64, height: 64, settings: EncoderSettings(.balanced)).parameterSets
    let repeats = try SkipSliceWriter(after: sets)
    #expect(throws: SegmentMismatch.self) {
      try SkipSliceWriter(after: ParameterSets(sequence: sets.sequence, picture: [0x68, 0, 0, 0]))
    }
    #expect(throws: SegmentMismatch.self) {
      try SkipSliceWriter(after: ParameterSets(sequence: [0x67, 66, 0, 30], picture: sets.picture))
    }
    for unit: [UInt8] in [
      [], [0, 0, 0, 1, 0x41], [0, 0, 0, 4, 0x65, 0x88, 0x84, 0x21], [0, 0, 0, 9, 0x41, 0x9A, 0x24, 1],
    ] {
      #expect(throws: SegmentMismatch.self) {
        var unit = unit
        try repeats.renumber(&unit, 1)
      }
    }
    var unit = repeats.picture(3)
    try repeats.renumber(&unit, 20)
    #expect(unit == repeats.picture(20))
  }
}

@Suite struct BitStreamTests {
  @Test func writtenFileIsReadBack() {
    var writer = BitWriter()
    let values = [0, 1, 2, 7, 8, 254, 255, 65_535, 1 << 20]
    for value in values {
      writer.put(unsigned: value)
      writer.put(signed: value)
      writer.put(signed: -value)
      writer.put(value & 1 == 1)
      writer.put(value & 0xFF, bits: 8)
    }
    var reader = BitReader(unit: writer.unit)
    for value in values {
      #expect(reader.unsigned() == value)
      #expect(reader.signed() == value)
      #expect(reader.signed() == -value)
      #expect(reader.flag() == (value & 1 == 1))
      #expect(reader.bits(8) == value & 0xFF)
    }
  }

  @Test func noStartCodeIsWritten() {
    var writer = BitWriter()
    for byte in [0, 0, 0, 0, 0, 1, 0, 0, 3, 0, 0, 4, 0, 0] { writer.put(byte, bits: 8) }
    #expect(writer.unit == [0, 0, 3, 0, 0, 3, 0, 1, 0, 0, 3, 3, 0, 0, 4, 0, 0])
    var reader = BitReader(unit: writer.unit)
    #expect((0..<14).map { _ in reader.bits(8) } == [0, 0, 0, 0, 0, 1, 0, 0, 3, 0, 0, 4, 0, 0])
    // After the end.
    #expect(reader.bits(16) == 0)
    #expect(reader.unsigned() >= 0)
  }
}
