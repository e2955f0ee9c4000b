import TestSupport
import Testing

@testable import ISOMedia

/// Units of AV1 streams, and the record that a container has of them. `ArchiveTests` has streams of the encoder.
@Suite struct AV1Tests {
  /// A sequence header of SVT-AV1 1.4.1, for 320×240 pixels, behind its delimiter.
  private static let header: [UInt8] = {
    var bits = BitWriter()
    bits.put(0, bits: 3 + 1 + 1 + 1 + 1 + 5 + 12)  // main profile; one layer without timing
    bits.put(8, bits: 5)  // level 4.0
    bits.put(0, bits: 1)  // main tier
    bits.put(8, bits: 4)
    bits.put(7, bits: 4)
    bits.put(319, bits: 9)
    bits.put(239, bits: 8)
    bits.put(0, bits: 1 + 3 + 4)
    bits.put(1, bits: 1)  // order of pictures
    bits.put(0, bits: 2)
    bits.put(true)  // screen tools: a choice
    bits.put(true)  // whole vectors: a choice
    bits.put(6, bits: 3)
    bits.put(0, bits: 3)
    bits.put(0, bits: 1 + 1 + 1 + 1 + 2 + 1)  // 8 bits, colour, no description
    bits.put(0, bits: 1)
    bits.stop()
    // `unit` puts emulation prevention bytes into zeros, which AV1 does not have.
    let payload = NALUnit.payload(of: bits.unit)
    return [0x12, 0, 0x0A, UInt8(payload.count)] + payload
  }()

  @Test func recordTellsWhatTheHeaderDoes() throws {
    let sets = try #require(ParameterSets(av1: Self.header))
    #expect(sets.codec == "av01.0.08M.08" && sets.entryType == "av01" && sets.configurationType == "av1C")
    #expect(sets.configuration == [0x81, 8, 0x0C, 0] + Self.header.dropFirst(2))
    #expect(ParameterSets(configuration: sets.configuration) == sets)
    #expect(sets.lengthPrefixed.isEmpty && sets.atOneFrameASecond == sets && sets.isOrdinary420)
  }

  /// A record of another stream would make players expect another picture.
  @Test func recordThatDisagreesWithItsHeaderIsRefused() throws {
    let record = try #require(ParameterSets(av1: Self.header)).configuration
    for index in 0..<4 {
      for bit in 0..<8 where !(index == 0 && bit == 7) {
        var other = record
        other[index] ^= 1 << bit
        #expect(ParameterSets(configuration: other) == nil)
      }
    }
    for count in 0..<record.count { #expect(ParameterSets(configuration: record.prefix(count)) == nil) }
    #expect(ParameterSets(configuration: record + [0]) == nil)
  }

  @Test func sampleHasNoDelimiterAndNoPadding() throws {
    let frame: [UInt8] = [0x32, 2, 7, 7]
    #expect(try AV1Sample.bytes(ofTemporalUnit: [0x12, 0] + frame + [0x7A, 1, 0x80]) == frame)
    #expect(throws: SegmentMismatch.self) { try AV1Sample.bytes(ofTemporalUnit: [0x12, 0]) }
  }

  /// Sizes behind the end, without an end, none, and a forbidden bit.
  @Test(
    arguments: [
      [0x32, 3, 0, 0], [0x32, 0x80], [0x32, 0x80, 0x80, 0x80, 0x80, 1], [0x30, 0, 0], [0x32, 0xFF, 0xFF, 0xFF, 0x7F],
      [0xB2, 0], [0x36], [0x36, 0],
    ] as [[UInt8]])
  func streamOfOtherUnitsIsRefused(stream: [UInt8]) {
    #expect(OpenBitstreamUnit.split(stream[...]) == nil)
    #expect(ParameterSets(av1: stream) == nil)
  }

  @Test func randomHeadersEndInTime() {
    var random = Random(seed: 47)
    for _ in 0..<Extent.of(2_000, full: 200_000) {
      let bytes = (0..<random.int(0...40)).map { _ in UInt8(random.int(0...255)) }
      let sets = ParameterSets(av1: bytes) ?? ParameterSets(configuration: [0x81] + bytes)
      if let sets { #expect(ParameterSets(configuration: sets.configuration) == sets) }
    }
  }

  @Test func writersOfH264TakeNoAV1() throws {
    let sets = try #require(ParameterSets(av1: Self.header))
    #expect(throws: SegmentMismatch.self) { try SkipSliceWriter(after: sets) }
    #expect(throws: SegmentMismatch.self) { try KeyPictureWriter(for: sets) }
  }
}
