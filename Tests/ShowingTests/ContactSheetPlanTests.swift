import Testing

@testable import Encoding
@testable import FrameBatches
@testable import Sessions
@testable import Showing

/// The tiles of a contact sheet and their positions.
@Suite struct ContactSheetPlanTests {
  private typealias Tile = ContactSheetPlan.Tile

  private func plan(_ segments: [PublishedSegment], every: Int? = nil) -> ContactSheetPlan {
    ContactSheetPlan(segments.map { .init(startMs: $0.startMs, segment: $0) }, every: every)
  }

  @Test func everyNthCaptureHasATileAndContinuedFramesDoNotCount() {
    let one = PublishedSegment.made(1_000, 4_000, captured: [true, true, true])
    let two = PublishedSegment.made(4_000, 7_000, captured: [false, true, true])
    let plan = plan([one, two], every: 2)
    #expect(
      plan.tiles == [
        .picture(segment: one, frame: 0), .picture(segment: one, frame: 2), .picture(segment: two, frame: 2),
      ])
    #expect(plan.captures == 5)
    #expect((plan.startMs, plan.endMs) == (1_000, 7_000))
  }

  @Test(arguments: [(1, 1), (60, 1), (61, 2), (120, 2), (121, 3), (86_400, 1_440)])
  func defaultSheetHasAtMostSixtyPictures(captures: Int, every: Int) {
    let plan = plan([.made(0, Int64(captures) * 1_000, captured: Array(repeating: true, count: captures))])
    #expect(plan.every == every)
    #expect((1...60).contains(plan.tiles.count))
  }

  @Test func gapHasATileInTimeOrderAndASeamHasNone() {
    let one = PublishedSegment.made(1_000, 2_000, gapAfterMs: 500)
    let two = PublishedSegment.made(2_500, 3_500)
    let three = PublishedSegment.made(3_700, 4_700, batch: "b", gapAfterMs: 300)
    let plan = plan([one, two, three])
    #expect(
      plan.tiles == [
        .picture(segment: one, frame: 0), .gap(startMs: 2_000, lengthMs: 500, count: 1),
        .picture(segment: two, frame: 0), .picture(segment: three, frame: 0),
        .gap(startMs: 4_700, lengthMs: 300, count: 1),
      ])
    #expect(plan.endMs == 5_000)
  }

  /// A session with many gaps would otherwise have a sheet of gap tiles only.
  @Test func gapsBetweenTwoPicturesAreOneTile() {
    let segments = (0..<100).map { PublishedSegment.made($0 * 2_000, $0 * 2_000 + 1_000, gapAfterMs: 1_000) }
    let plan = plan(segments, every: 50)
    #expect(
      plan.tiles == [
        .picture(segment: segments[0], frame: 0), .gap(startMs: 1_000, lengthMs: 50_000, count: 50),
        .picture(segment: segments[50], frame: 0), .gap(startMs: 101_000, lengthMs: 50_000, count: 50),
      ])
    #expect(plan.gaps.count == 100)
  }

  @Test func lostSegmentIsNoGap() {
    let one = PublishedSegment.made(1_000, 2_000)
    let two = PublishedSegment.made(9_000, 10_000)
    let plan = ContactSheetPlan(
      [
        .init(startMs: 1_000, segment: one), .init(startMs: 2_000, segment: nil), .init(startMs: 3_000, segment: nil),
        .init(startMs: 9_000, segment: two),
      ], every: 1)
    #expect(
      plan.tiles == [
        .picture(segment: one, frame: 0), .lost(startMs: 2_000, count: 2), .picture(segment: two, frame: 0),
      ])
    #expect(plan.gaps.isEmpty)
  }

  private func layout(_ tiles: Int, width: Int = 200, columns: Int? = nil, header: String = "h") -> SheetLayout {
    SheetLayout(
      tiles: tiles, pictures: [PixelSize(width: 750, height: 1_334), PixelSize(width: 1_334, height: 750)],
      width: width, columns: columns, header: [header])
  }

  @Test(arguments: [1, 2, 7, 40, 61, 700])
  func tilesDoNotOverlapAndFitTheSheet(tiles: Int) {
    for layout in [layout(tiles), layout(tiles, columns: 3), layout(tiles, width: 72, header: "\(tiles) words of it")] {
      let areas = (0..<tiles).map(layout.tileArea)
      for (index, area) in areas.enumerated() {
        #expect(area.x >= SheetLayout.margin && area.x + area.width <= layout.width - SheetLayout.margin)
        #expect(area.y > SheetLayout.margin && area.y + area.height < layout.height - SheetLayout.margin)
        let next = areas.dropFirst(index + 1).first
        #expect(next.map { $0.x > area.x + area.width || $0.y > area.y + area.height } ?? true)
      }
    }
    let most = layout(tiles, width: 200, columns: 3)
    #expect(most.columns == 3)
    #expect(most.tile == PixelSize(width: 200, height: 356))
  }

  @Test func fileThatIsTooLargeIsReported() {
    #expect(layout(60).whyTooLarge == nil)
    #expect(layout(60, columns: 60).whyTooLarge == nil)
    #expect(layout(100, columns: 100).whyTooLarge?.contains("more than 16384 a side or 40000000 in all") == true)
    #expect(layout(3_600).whyTooLarge != nil)
  }

  @Test(arguments: [
    (0, "0 s"), (500, "0.5 s"), (11_000, "11 s"), (11_250, "11.25 s"), (60_000, "1 min"), (61_001, "1 min 1.001 s"),
    (3_600_000, "1 h"), (7_384_500, "2 h 3 min 4.5 s"), (3_605_000, "1 h 5 s"),
  ])
  func aSpanIsExact(ms: Int64, text: String) { #expect(SheetText.span(ms) == text) }

  @Test(arguments: [
    (0, "00:00:00.000"), (12_340, "00:00:12.340"), (3_661_001, "01:01:01.001"), (360_000_000, "100:00:00.000"),
  ])
  func clockTextCountsHoursBeyondADay(ms: Int64, text: String) { #expect(CueTime.clock(ms) == text) }

  @Test func linesBreakBetweenWordsAndInsideOfLongOnes() {
    #expect(SheetText.wrap("a bc def ghij", columns: 4) == ["a bc", "def", "ghij"])
    #expect(SheetText.wrap("ab cdefghijk l", columns: 4) == ["ab", "cdef", "ghij", "k l"])
    #expect(SheetText.wrap("", columns: 4) == [])
  }

  @Test func allGlyphsDiffer() {
    let letters = (UInt8(ascii: " ")...UInt8(ascii: "~")).map { letter in
      (0..<BitmapFont.rows).map { row in
        (0..<BitmapFont.columns).map { BitmapFont.isSet(letter, column: $0, row: row) }
      }
    }
    #expect(Set(letters).count == 95)
    #expect(letters.filter { !$0.joined().contains(true) }.count == 1)
    // Characters that the font does not have.
    for letter: UInt8 in [0, 31, 127, 0xC3, 255] {
      #expect(BitmapFont.isSet(letter, column: 2, row: 6) == BitmapFont.isSet(UInt8(ascii: "?"), column: 2, row: 6))
    }
  }
}
