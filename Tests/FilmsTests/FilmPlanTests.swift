import Testing

@testable import Encoding
@testable import Films
@testable import ISOMedia
@testable import Sessions

/// Returns the parts as text: film start + length (of which gap), and from where in the segment.
private func parts(_ plan: StitchPlan) -> [String] {
  plan.parts.map {
    "\($0.startMs)+\($0.lengthMs)" + ($0.gapMs > 0 ? " (\($0.gapMs))" : "")
      + ($0.skippedMs > 0 ? " from \($0.skippedMs)" : "")
  }
}

/// Returns the chapters without the instants at the end of their titles.
private func chapters(_ plan: StitchPlan) -> [Chapter] {
  plan.namedMap(of: "").movieChapters.map { chapter in
    Chapter(startMs: chapter.startMs, title: String(chapter.title.prefix { $0 != "," }))
  }
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
      chapters(plan) == [
        Chapter(startMs: 0, title: "start"), Chapter(startMs: 7_000, title: "gap of 3 s"),
        Chapter(startMs: 10_000, title: "after a gap of 3 s"), Chapter(startMs: 14_000, title: "gap of 0.250 s"),
      ])
  }

  @Test func titlesOfChaptersEndWithTheirInstants() {
    var plan = StitchPlan(session, gaps: .cut)
    #expect(
      plan.namedMap(of: "").movieChapters.map(\.title) == [
        "start, 1970-01-01T00:00:01.000Z", "after a gap of 3 s, 1970-01-01T00:00:11.000Z",
      ])
    plan.zeroMs = 1_000
    #expect(
      plan.namedMap(of: "").movieChapters.map(\.title) == ["start, +0.000s", "after a gap of 3 s, +10.000s"])
  }

  @Test func cutGapsAreRemovedAndSeamsAreClosed() {
    let plan = StitchPlan(session, gaps: .cut)
    #expect(parts(plan) == ["0+5000", "5000+2000", "7000+700", "7700+2700", "10400+600"])
    #expect(
      chapters(plan) == [Chapter(startMs: 0, title: "start"), Chapter(startMs: 7_000, title: "after a gap of 3 s")])
  }

  @Test func aSessionWithoutGapsHasNoChapters() {
    #expect(
      StitchPlan([PublishedSegment.made(0, 5_000), PublishedSegment.made(5_000, 9_000)], gaps: .hold).chapters.isEmpty)
  }

  struct Cut: Sendable {
    let range: Range<Int64>
    let held: [String]
    let cut: [String]
  }

  /// The gap is from 8 000 to 11 000; the last one from 15 000 to 15 250.
  @Test(arguments: [
    Cut(range: 1_000..<6_000, held: ["0+5000"], cut: ["0+5000"]),
    Cut(range: 1_001..<5_999, held: ["0+4998 from 1"], cut: ["0+4998 from 1"]),
    Cut(range: 5_999..<6_001, held: ["0+1 from 4999", "1+1"], cut: ["0+1 from 4999", "1+1"]),
    Cut(range: 7_000..<9_000, held: ["0+2000 (1000) from 1000"], cut: ["0+1000 from 1000"]),
    Cut(range: 8_000..<11_000, held: ["0+3000 (3000) from 2000"], cut: []),
    Cut(range: 8_500..<9_000, held: ["0+500 (500) from 2500"], cut: []),
    Cut(range: 9_000..<11_500, held: ["0+2000 (2000) from 3000", "2000+500"], cut: ["0+500"]),
    // At the seam, the next segment cuts the one before it short.
    Cut(range: 11_600..<11_800, held: ["0+100 from 600", "100+100"], cut: ["0+100 from 600", "100+100"]),
    // The other seam is held.
    Cut(range: 14_100..<14_500, held: ["0+300 from 2400", "300+100"], cut: ["0+300 from 2400", "300+100"]),
    Cut(range: 14_900..<15_250, held: ["0+350 (250) from 500"], cut: ["0+100 from 500"]),
  ])
  func rangeCutsTheFirstAndTheLastPart(cut: Cut) {
    #expect(parts(StitchPlan(session, gaps: .hold, range: cut.range)) == cut.held)
    #expect(parts(StitchPlan(session, gaps: .cut, range: cut.range)) == cut.cut)
    let plan = StitchPlan(session, gaps: .hold, range: cut.range)
    #expect(plan.shown == cut.range)
    #expect(plan.durationMs == Int64(cut.range.count))
  }

  @Test func chaptersOfAClipAreItsOwnAtItsSpeed() throws {
    let double = try #require(FilmSpeed("2"))
    #expect(
      chapters(StitchPlan(session, gaps: .hold, range: 7_000..<12_000, speed: double)) == [
        Chapter(startMs: 0, title: "start"), Chapter(startMs: 500, title: "gap of 3 s"),
        Chapter(startMs: 2_000, title: "after a gap of 3 s"),
      ])
    #expect(
      chapters(StitchPlan(session, gaps: .hold, range: 9_000..<12_000)) == [
        Chapter(startMs: 0, title: "start"), Chapter(startMs: 2_000, title: "after a gap of 3 s"),
      ])
    #expect(StitchPlan(session, gaps: .cut, range: 9_000..<12_000).chapters.isEmpty)
    #expect(StitchPlan(session, gaps: .hold, range: 1_000..<8_000).chapters.isEmpty)
  }
}
