import Testing

@testable import Encoding
@testable import ISOMedia
@testable import Sessions

/// Returns the parts as text: film start + length (of which gap).
private func parts(_ plan: StitchPlan) -> [String] {
  plan.parts.map { "\($0.startMs)+\($0.lengthMs)" + ($0.gapMs > 0 ? " (\($0.gapMs))" : "") }
}

@Suite struct FilmPlanTests {
  private let session = [
    PublishedSegment.made(1_000, 6_000), PublishedSegment.made(6_000, 8_000, gapAfterMs: 3_000),
    PublishedSegment.made(11_000, 12_000),
    PublishedSegment.made(11_700, 14_000, batch: "b"),
    PublishedSegment.made(14_400, 15_000, batch: "c", gapAfterMs: 250),
  ]

  @Test func heldGapsKeepSessionTime() {
    let plan = StitchPlan(session, gaps: .hold)
    #expect(parts(plan) == ["0+5000", "5000+5000 (3000)", "10000+700", "10700+2700", "13400+850 (250)"])
    #expect(plan.durationMs == 14_250)
    #expect(
      plan.chapters == [
        Chapter(startMs: 0, title: "start"), Chapter(startMs: 7_000, title: "gap of 3 s"),
        Chapter(startMs: 10_000, title: "after a gap of 3 s"), Chapter(startMs: 14_000, title: "gap of 0.250 s"),
      ])
  }

  @Test func cutGapsAreRemovedAndSeamsAreClosed() {
    let plan = StitchPlan(session, gaps: .cut)
    #expect(parts(plan) == ["0+5000", "5000+2000", "7000+700", "7700+2700", "10400+600"])
    #expect(
      plan.chapters == [Chapter(startMs: 0, title: "start"), Chapter(startMs: 7_000, title: "after a gap of 3 s")])
  }

  @Test func aSessionWithoutGapsHasNoChapters() {
    #expect(
      StitchPlan([PublishedSegment.made(0, 5_000), PublishedSegment.made(5_000, 9_000)], gaps: .hold).chapters.isEmpty)
  }
}
