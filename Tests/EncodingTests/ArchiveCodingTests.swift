import Testing

@testable import Encoding

/// The choice of an archive's coding, for libavcodecs that this system does not have.
@Suite struct ArchiveCodingTests {
  private static let measured = ArchiveCoding.Encoders(major: 59, hasAV1: true)
  private static let other = ArchiveCoding.Encoders(major: 60, hasAV1: true)
  private static let none = ArchiveCoding.Encoders(major: 59, hasAV1: false)

  @Test(
    arguments: [
      (nil, 720, measured, ArchiveCoding.av1, nil), (nil, 64, measured, .av1, nil),
      (nil, 62, measured, .h264, "less than 64 pixels"), (nil, 720, other, .h264, "not measured with libavcodec 60"),
      (nil, 720, none, .h264, "no SVT-AV1"), (.av1, 720, other, .av1, nil),
      (.h264, 720, measured, .h264, "--archive-codec"),
    ] as [(ArchiveCoding?, Int, ArchiveCoding.Encoders, ArchiveCoding, String?)])
  func choiceTellsWhyItTakesMoreBytes(
    wanted: ArchiveCoding?, side: Int, encoders: ArchiveCoding.Encoders, coding: ArchiveCoding, reason: String?
  ) throws {
    let choice = try #require(ArchiveCoding.choice(wanted, shortestSide: side, encoders))
    #expect(choice.coding == coding && (choice.reason == nil) == (reason == nil))
    if let reason { #expect(choice.reason?.contains(reason) == true) }
  }

  @Test func codingThatIsNotThereIsNotReplaced() {
    #expect(ArchiveCoding.choice(.av1, shortestSide: 720, Self.none) == nil)
    #expect(ArchiveCoding.choice(.av1, shortestSide: 62, Self.measured) == nil)
  }

  @Test func manifestNamesTheCoding() {
    for coding in ArchiveCoding.allCases {
      let json = EncoderSettings(coding).json.object ?? [:]
      #expect(json["quality"]?.string == "archive" && json["codec"]?.string == coding.codec)
      #expect(json["segmentMs"]?.integer == 600_000)
    }
    #expect(EncoderSettings(.balanced).json.object?["quality"]?.string == "balanced")
  }
}
