import FrameBatches
import TestSupport
import Testing

@testable import Encoding
@testable import ISOMedia

/// x264 keeps no picture until the next one: each takes 9 MB of a large screen.
@Suite struct EncoderDelayTests {
  init() { FFmpegLog.silence() }

  /// Encodes pictures that are shown for different times, and returns the pictures that each call returned.
  private func coded(
    _ pictures: [Picture], _ quality: Quality, isDelayed: Bool?
  ) throws -> (calls: [[CodedPicture]], sets: ParameterSets) {
    let encoder = try VideoEncoder(
      width: pictures[0].codedWidth, height: pictures[0].codedHeight, settings: EncoderSettings(quality),
      isDelayed: isDelayed)
    var calls: [[CodedPicture]] = []
    for (index, picture) in pictures.enumerated() {
      calls.append(try encoder.encode(picture, pts: Int64(index * index) * 31_000))
    }
    return (calls + [try encoder.finish()], encoder.parameterSets)
  }

  private func pictures() throws -> [Picture] {
    let fixture = Fixture("exact-1fps")
    let decoder = PictureDecoder(limits: Limits())
    return try (0..<4).map {
      try decoder.picture(from: fixture.bytes("000\($0).jpg"), masks: .none)
    }
  }

  @Test func eachPictureIsReturnedByItsOwnCall() throws {
    let (calls, _) = try coded(try pictures(), .balanced, isDelayed: nil)
    #expect(calls.map(\.count) == [1, 1, 1, 1, 0])
  }

  @Test(arguments: Quality.allCases) func bytesAndTimesAreThoseOfADelayedEncoder(quality: Quality) throws {
    let pictures = try pictures()
    let (own, delayed) = (
      try coded(pictures, quality, isDelayed: nil), try coded(pictures, quality, isDelayed: true)
    )
    #expect(delayed.calls.map(\.count) == [0, 1, 1, 1, 1])
    #expect(own.sets == delayed.sets)
    let (left, right) = (own.calls.joined(), delayed.calls.joined())
    #expect(left.map(\.data) == right.map(\.data))
    #expect(left.map(\.pts) == right.map(\.pts) && left.map(\.dts) == right.map(\.dts))
    #expect(left.map(\.isKey) == right.map(\.isKey))
  }

  /// A set that ends in its frame rate lacks the flag that says whether the rate is fixed.
  @Test func parameterSetThatEndsInItsFrameRateIsUnchanged() {
    var set = BitWriter()
    for (value, bits) in [(0x67, 8), (66, 8), (30, 16)] { set.put(value, bits: bits) }
    // Identity, bits of a number, order, references; no gaps; columns and rows.
    for value in [0, 0, 2, 1] { set.put(unsigned: value) }
    set.put(false)
    for value in [1, 1] { set.put(unsigned: value) }
    // Frames; no cropping; usability information without all that precedes the frame rate.
    for flag in [true, true, false, true, false, false, false, false, true] { set.put(flag) }
    for value in [1, 180_000] { set.put(value, bits: 32) }
    #expect(set.isAligned)
    let whole = ParameterSets(sequence: set.unit + [0x80], picture: [0x68])
    #expect(whole.atOneFrameASecond != whole)
    let short = ParameterSets(sequence: set.unit, picture: [0x68])
    #expect(short.atOneFrameASecond == short)
  }
}
