import Testing

@testable import Encoding
@testable import ISOMedia
@testable import Sessions

/// The samples of a segment in a film. `ClipTests` has those of clips.
@Suite struct SegmentSamplesTests {
  /// Returns the texts of a timing track whose captures count from 1 000.
  private func counted(_ texts: [String]) throws -> [String] {
    let timing = texts.map { text in
      Sample(duration: 90, data: [UInt8(text.utf8.count >> 8), UInt8(text.utf8.count & 0xFF)] + Array(text.utf8))
    }
    var samples = SegmentSamples(
      parameterSets: ParameterSets(sequence: [], picture: []), colour: nil, video: [], timing: timing)
    try samples.countTimes(fromMs: 1_000, file: "segment.mp4")
    return samples.timing.map { sample in
      #expect(sample.duration == 90 && Int(sample.data[0]) << 8 | Int(sample.data[1]) == sample.data.count - 2)
      return String(decoding: sample.data.dropFirst(2), as: UTF8.self)
    }
  }

  @Test func capturesCountFromAnInstant() throws {
    // That of a gap is empty.
    #expect(
      try counted([#"{"f":"a.jpg","t":1000}"#, "", #"{"continued":true,"f":"ü.jpg","t":978307200500}"#]) == [
        #"{"f":"a.jpg","t":0}"#, "", #"{"continued":true,"f":"ü.jpg","t":978307199500}"#,
      ])
  }

  /// A capture that cannot be counted would be told as a date.
  @Test(arguments: ["{", "{}", "[]", #"{"t":"1000"}"#, #"{"t":1.5}"#, #"{"t":1,"t":2}"#])
  func textWithoutACaptureIsDamage(text: String) {
    let error = #expect(throws: BadSession.self) { try counted([#"{"t":1000}"#, text]) }
    #expect(error?.file == "segment.mp4" && error?.cause.hasPrefix("a text of the timing track: ") == true)
  }

  /// In milliseconds from the film's start. A picture begins at its own instant, and its repeats lie on the grid.
  @Test(
    arguments: [
      (0..<125, []), (0..<126, [125]), (10..<130, []), (10..<140, [125]), (333..<666, [375, 500, 625]),
      (1_000..<1_500, [1_125, 1_250, 1_375]), (125..<251, [250]),
    ] as [(Range<Int64>, [Int64])])
  func filmRepeatsPicturesOnOneGrid(shown: Range<Int64>, repeats: [Int64]) {
    let range = 90 * shown.lowerBound..<90 * shown.upperBound
    #expect(SegmentSamples.gridRepeats(in: range) == repeats.map { 90 * $0 })
    #expect(repeats.count <= SegmentSamples.mostRepeats(ofPictures: 1, lengthMs: Int64(shown.count)))
  }

  @Test func onlyBothEndsOfALongHoldAreRepeated() {
    let day = 90 * 86_400_000
    let repeats = SegmentSamples.gridRepeats(in: 90..<Int64(day))
    #expect(repeats.count == 80 && SegmentSamples.mostRepeats(ofPictures: 1, lengthMs: 86_400_000) == 80)
    #expect(repeats.first == 11_250 && repeats[31] == 32 * 11_250)
    #expect(repeats[32] == Int64(day) - 48 * 11_250 && repeats.last == Int64(day) - 11_250)
    #expect(SegmentSamples.gridRepeats(in: 0..<81 * 11_250).count == 80)
  }

  /// In milliseconds. A repeat within a second before the next picture would be shown in its place by WebKitGTK.
  @Test(
    arguments: [
      (0..<1_000, []), (0..<1_012, [12]), (500..<9_000, [1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 7_000, 8_000]),
      (0..<3_000, [1_000, 2_000]),
    ] as [(Range<Int64>, [Int64])])
  func fragmentRepeatsPicturesEachSecondBeforeTheirEnd(shown: Range<Int64>, repeats: [Int64]) {
    #expect(
      SegmentSamples.fragmentRepeats(in: 90 * shown.lowerBound..<90 * shown.upperBound) == repeats.map { 90 * $0 })
  }
}
