import Testing

@testable import FrameBatches

@Suite struct SessionInstantTests {
  @Test(arguments: [
    ("1767859512340", SessionInstant.unixMs(1_767_859_512_340)),
    ("2026-01-08T08:05:12.340Z", .unixMs(1_767_859_512_340)),
    ("2026-01-08T09:05:12+01:00", .unixMs(1_767_859_512_000)),
    ("+0s", .afterStartMs(0)), ("+12.5s", .afterStartMs(12_500)), ("+86400.001s", .afterStartMs(86_400_001)),
  ])
  func instantOfAPersonIsReadExactly(_ text: String, _ instant: SessionInstant) {
    #expect(SessionInstant(text) == instant)
  }

  @Test(arguments: [
    "", "-1", "+", "+s", "+.5s", "+1.s", "+1.2345s", "+1", "+-1s", "+1e3s", "12.5s", "nan", "+99999999999999999999s",
    "2026-01-08T08:05:12", "9223372036854775807", "tomorrow",
  ])
  func textThatIsNoInstantIsRefused(_ text: String) {
    #expect(SessionInstant(text) == nil)
  }

  @Test func instantAfterTheStartBecomesUnixTime() {
    #expect(SessionInstant.afterStartMs(500).unixMs(inSessionFrom: 1_000) == 1_500)
    #expect(SessionInstant.unixMs(7).unixMs(inSessionFrom: 1_000) == 7)
  }
}
