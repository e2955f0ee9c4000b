import Testing

@testable import Encoding
@testable import FrameBatches
@testable import Sessions

@Suite struct SessionManifestTests {
  private func session(_ segments: [PublishedSegment]) throws -> SessionIndex {
    let id = try #require(SessionID("s"))
    return try #require(SessionIndex(session: id, segments: segments))
  }

  @Test func segmentsThatMeetLeaveNoGap() throws {
    let session = try session([PublishedSegment.made(0, 5_000), PublishedSegment.made(5_000, 10_000, final: true)])
    #expect(session.gaps.isEmpty)
    #expect(session.durationMs == 10_000)
    #expect(session.isComplete)
    #expect(session.bytes == 20)
  }

  @Test func distanceBelowHalfAnIntervalBetweenBatchesIsASeam() throws {
    #expect(
      try session([PublishedSegment.made(0, 5_000), PublishedSegment.made(5_499, 9_000, batch: "b")]).gaps.isEmpty)
    #expect(
      try session([PublishedSegment.made(0, 5_000), PublishedSegment.made(4_501, 9_000, batch: "b")]).gaps.isEmpty)
    #expect(
      try session([PublishedSegment.made(0, 5_000), PublishedSegment.made(5_500, 9_000, batch: "b")]).gaps
        == [SessionIndex.Gap(startMs: 5_000, endMs: 5_500)])
  }

  @Test func anyDistanceInsideABatchIsAGap() throws {
    #expect(
      try session([PublishedSegment.made(0, 5_000, gapAfterMs: 1), PublishedSegment.made(5_001, 9_000)]).gaps
        == [SessionIndex.Gap(startMs: 5_000, endMs: 5_001)])
  }

  @Test func gapAtTheEndOfABatchRemainsBeforeAnyNextBatch() throws {
    for next: Int64 in [5_300, 5_000 + 300 + 499, 5_000 + 300 - 200] {
      #expect(
        try session([PublishedSegment.made(0, 5_000, gapAfterMs: 300), PublishedSegment.made(next, 9_000, batch: "b")])
          .gaps == [SessionIndex.Gap(startMs: 5_000, endMs: next)])
    }
  }

  @Test func aGapAtTheEndCounts() throws {
    let session = try session([PublishedSegment.made(0, 5_000, gapAfterMs: 700)])
    #expect(session.endMs == 5_700)
    #expect(session.gaps == [SessionIndex.Gap(startMs: 5_000, endMs: 5_700)])
  }

  @Test func aContinuedFrameCountsOnceInTheSession() throws {
    let session = try session([
      PublishedSegment.made(0, 5_000), PublishedSegment.made(5_000, 8_000, captured: [false, true]),
    ])
    #expect(session.entries.map(\.frames) == [1, 2])
    #expect(session.frames == 2)
  }

  @Test func theScriptMakesEachFileLastUntilTheNext() throws {
    let id = try #require(SessionID("s"))
    let index = try #require(
      SessionIndex(
        session: id,
        segments: [
          PublishedSegment.made(1_000, 6_000), PublishedSegment.made(5_801, 9_000, batch: "b"),
          PublishedSegment.made(20_000, 20_009, batch: "c"),
        ]))
    let view = IndexText(index)
    #expect(
      String(decoding: view.files[1].bytes, as: UTF8.self) == """
        ffconcat version 1.0
        file segment-0000000001000.mp4
        outpoint 4.801
        duration 4.801
        file segment-0000000005801.mp4
        duration 14.199
        file segment-0000000020000.mp4
        duration 0.009

        """)
  }
}

@Suite struct SegmentNameTests {
  @Test func fileNamesHaveTheStartInThirteenDigits() {
    #expect(SegmentName.video(978_307_200_000) == "segment-0978307200000.mp4")
    #expect(SegmentName.start(ofManifest: "segment-1767859512340.json") == 1_767_859_512_340)
    for other in [
      "session.json", "segment-1767859512340.mp4", "segment-17.json", "segment-17678595123x0.json",
      "segment-1767859512340.sentry.json",
    ] {
      #expect(SegmentName.start(ofManifest: other) == nil)
    }
  }
}
