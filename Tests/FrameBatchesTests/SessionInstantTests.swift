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

  @Test(arguments: [
    ("2026-01-08T08:05:12", "add it: 2026-01-08T08:05:12Z for UTC, or 2026-01-08T08:05:12+01:00"),
    ("2026-01-08 08:05:12.340", "add it: 2026-01-08T08:05:12.340Z for UTC"),
    ("2026-01-08 08:05:12Z", "write 2026-01-08T08:05:12Z"), ("12.5s", "write +12.5s"), ("+12.5", "write +12.5s"),
    ("12.5", "write +12.5s"), ("1767859512.340", "write milliseconds: 1767859512340"),
    ("tomorrow", "it is unix milliseconds, ISO 8601 with a zone, or +12.5s"),
    ("2026-13-08T08:05:12", "it is unix milliseconds"),
  ])
  func faultNamesAnInstantThatIsOne(_ text: String, _ advice: String) throws {
    let fault = SessionInstant.fault(of: text)
    #expect(fault.contains(advice), "\(fault)")
    guard !advice.hasPrefix("it is") else { return }
    let words = fault.replacing(",", with: "").split(separator: " ").map(String.init)
    #expect(words.contains { $0 != text && SessionInstant($0) != nil }, "\(fault)")
  }

  @Test func instantAfterTheStartBecomesUnixTime() {
    #expect(SessionInstant.afterStartMs(500).unixMs(inSessionFrom: 1_000) == 1_500)
    #expect(SessionInstant.unixMs(7).unixMs(inSessionFrom: 1_000) == 7)
  }
}
