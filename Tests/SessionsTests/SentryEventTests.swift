import Testing

@testable import Encoding
@testable import FrameBatches
@testable import Sessions

@Suite struct SentryEventTests {
  @Test func eventIsASingleLineInSentryFormat() {
    let segment = PublishedSegment.made(
      1_767_859_512_340, 1_767_859_517_340, captured: [false, true, true], bytes: 6_120)
    #expect(
      String(decoding: SentryEvent(segment, ordinal: 7).text, as: UTF8.self)
        == #"{"data":{"payload":{"container":"mp4","duration":5000,"encoding":"h264","frameCount":3,"frameRate":1,"#
        + #""frameRateType":"variable","height":2,"left":0,"segmentId":7,"size":6120,"top":0,"width":2},"tag":"video"},"#
        + #""timestamp":1767859512340,"type":5}"# + "\n")
  }

  @Test(arguments: [(1_000, 1), (500, 2), (333, 3), (400, 3), (667, 1), (666, 2), (60_000, 1), (1, 1_000), (0, 1_000)])
  func rateIsRoundedToTheNearestAndAtLeastOne(intervalMs: Int64, rate: Int64) {
    #expect(SentryEvent(.made(0, 5_000, intervalMs: intervalMs), ordinal: 0).frameRate == rate)
  }

  @Test func tenMebibytesAreAcceptedAndOneByteMoreIsRefused() throws {
    let session = try #require(SessionID("s"))
    #expect(SentryEvent.warning(of: .made(0, 5_000, bytes: 10_485_760), in: session) == nil)
    #expect(
      SentryEvent.warning(of: .made(0, 5_000, bytes: 10_485_761), in: session)
        == "s/segment-0000000000000.mp4: 10485761 bytes, and Sentry's backend drops videos of more than 10 MiB; "
        + "choose a lower --quality")
  }
}
