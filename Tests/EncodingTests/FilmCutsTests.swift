import Testing

@testable import Encoding

/// The segments of a film end where the picture changes.
@Suite struct FilmCutsTests {
  /// Pictures of 100 blocks.
  private static let side = 10 * ChangedBlocks.side

  /// Returns the starts of the segments, in milliseconds.
  private func starts(
    _ captures: [(timeMs: Int64, changed: Int?)], endMs: Int64, _ film: FilmCuts = FilmCuts()
  ) -> [Int64] {
    holds(captures, endMs: endMs, film).filter(\.opensSegment).map(\.startMs)
  }

  private func holds(
    _ captures: [(timeMs: Int64, changed: Int?)], endMs: Int64, _ film: FilmCuts
  ) -> [FrameHold] {
    var timeline = Timeline(intervalMs: 1_000, maxHoldMs: nil, film: film)
    let all = captures.flatMap { timeMs, changed in
      timeline.append(
        Capture(source: "", timeMs: timeMs, width: Self.side, height: Self.side, changedBlocks: changed))
    }
    return all + timeline.finish(endMs: endMs)
  }

  @Test func motionHasAKeyFrameEachTenSeconds() {
    let motion: [(timeMs: Int64, changed: Int?)] = (0..<250).map { (100 * $0, 9) }
    #expect(starts(motion, endMs: 25_000) == [0, 10_000, 20_000])
    let noise: [(timeMs: Int64, changed: Int?)] = motion.map { ($0.timeMs, 100) }
    #expect(starts(noise, endMs: 25_000) == [0, 10_000, 20_000])
  }

  @Test func stillHasNoFurtherKeyFrame() {
    let still: [(timeMs: Int64, changed: Int?)] = (0..<300).map { (1_000 * $0, 0) }
    #expect(starts(still, endMs: 300_000) == [0])
    #expect(starts([(0, nil)], endMs: 3_600_000) == [0])
  }

  @Test func pictureThatChangesAsAWholeHasAKeyFrame() {
    #expect(starts([(0, nil), (1_000, 3), (2_000, 80), (3_000, 2)], endMs: 4_000) == [0, 2_000])
    #expect(starts([(0, nil), (60_000, 80), (120_000, 2)], endMs: 180_000) == [0, 60_000])
  }

  @Test func picturesThatStayCountLittle() {
    let screens: [(timeMs: Int64, changed: Int?)] = (0..<60).map { (28_000 * $0, 5) }
    #expect(starts(screens, endMs: 60 * 28_000) == [0, 616_000, 1_232_000])
  }

  /// Readers count a sample in 31 bits.
  @Test func holdOfDaysIsDividedWithinItsSegment() {
    let holds = holds([(0, nil)], endMs: 86_400_000, FilmCuts())
    #expect(holds.map(\.opensSegment) == [true, false, false, false, false])
    #expect(holds.map(\.holdMs).reduce(0, +) == 86_400_000 && holds.allSatisfy { $0.holdMs <= 5 * 3_600_000 })
    #expect(holds.map(\.closingGapMs) == [nil, nil, nil, nil, 0])
  }

  /// Of a segment with too many pictures, a fast film shows the first only.
  @Test func fastFilmHasASegmentForEachPictureOnScreen() {
    let film = FilmCuts(pictureMs: 24_000, distanceMs: 4_800)
    let captures: [(timeMs: Int64, changed: Int?)] = (0..<120).map { (1_000 * $0, 1) }
    #expect(starts(captures, endMs: 120_000, film) == [0, 24_000, 48_000, 72_000, 96_000])
    let still: [(timeMs: Int64, changed: Int?)] = captures.map { ($0.timeMs, 0) }
    #expect(starts(still, endMs: 120_000, film) == [0])
    let sparse: [(timeMs: Int64, changed: Int?)] = (0..<10).map { (60_000 * $0, 1) }
    #expect(starts(sparse, endMs: 600_000, film) == [0])
  }
}
