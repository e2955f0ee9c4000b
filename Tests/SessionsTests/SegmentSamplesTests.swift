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
}
