import Testing

@testable import Encoding

@Suite struct ArchiveCodingTests {
  @Test func manifestNamesTheCoding() {
    let json = EncoderSettings.archive.json.object ?? [:]
    #expect(json["quality"]?.string == "archive" && json["codec"]?.string == "libx264")
    #expect(json["preset"]?.string == "veryslow" && json["segmentMs"]?.integer == 600_000)
    #expect(EncoderSettings(.balanced).json.object?["quality"]?.string == "balanced")
  }
}
