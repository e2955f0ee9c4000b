import FrameBatches
import Testing

@testable import Encoding
@testable import Films
@testable import Showing

/// Which pictures of a session `pictures` writes. Pictures have 100 blocks, and one comes a second.
@Suite struct PictureChoiceTests {
  private static let size = PixelSize(width: 160, height: 160)

  /// - Parameter changes: the changed blocks of each picture; nil if they are unknown.
  private func pictures(_ changes: [Int?]) -> [CapturedPicture] {
    changes.enumerated().map { index, change in
      let timeMs = Int64(index) * 1_000
      return CapturedPicture(
        segment: 0, frame: index, timeMs: timeMs, shownMs: timeMs..<timeMs + 1_000, size: Self.size, blocks: 100,
        change: change.map { .exact($0) } ?? .unknown)
    }
  }

  /// Returns the indexes of the chosen pictures.
  private func chosen(_ changes: [Int?], _ set: (inout PictureChoice) -> Void) throws -> [Int] {
    var choice = PictureChoice()
    set(&choice)
    return try choice.chosen(of: pictures(changes)).map(\.frame)
  }

  @Test func everyPictureIsChosenUnlessSomethingIsAskedFor() throws {
    #expect(try chosen([nil, 0, 3, 0]) { _ in } == [0, 1, 2, 3])
    #expect(try chosen([]) { $0.changedOnly = true } == [])
  }

  @Test func equalPicturesAreLeftOut() throws {
    #expect(try chosen([nil, 0, 3, 0, 0, 1, nil, 0]) { $0.changedOnly = true } == [0, 2, 5, 6])
    // The first picture of a part is chosen, whatever was before.
    #expect(try chosen([0, 0, 1]) { $0.changedOnly = true } == [0, 2])
  }

  @Test func equalPicturesHoldTheOneBefore() throws {
    var choice = PictureChoice()
    choice.changedOnly = true
    #expect(try choice.chosen(of: pictures([nil, 0, 0, 4, 0])).map(\.shownMs) == [0..<3_000, 3_000..<5_000])
    // Not over a gap.
    var all = pictures([nil, 0])
    all[1].shownMs = 1_500..<2_000
    #expect(try choice.chosen(of: all).map(\.shownMs) == [0..<1_000])
    // Not a picture that another one has replaced meanwhile.
    choice.minChange = 50
    #expect(try choice.chosen(of: pictures([nil, 0, 10, 0, 60])).map(\.shownMs) == [0..<2_000, 4_000..<5_000])
  }

  @Test func smallChangesAddUp() throws {
    #expect(try chosen([nil, 4, 5, 1, 0, 20, 9, 1]) { $0.minChange = 10 } == [0, 3, 5, 7])
    #expect(try chosen([nil, 4, 5]) { $0.minChange = 10 } == [0])
    #expect(try chosen([nil, 1, 1]) { $0.minChange = 0.5 } == [0, 1, 2])
    // An unknown change is one of the whole picture.
    #expect(try chosen([nil, 1, nil, 1]) { $0.minChange = 100 } == [0, 2])
  }

  @Test func largestChangesAreKeptInTheOrderOfTime() throws {
    #expect(try chosen([nil, 5, 90, 7, 0, 8]) { $0.max = 3 } == [0, 2, 5])
    #expect(try chosen([nil, 5, 90]) { $0.max = 1 } == [0])
    #expect(try chosen([nil, 5, 0, 90]) { $0.max = 100 } == [0, 1, 3])
    // Of equal changes the first ones.
    #expect(try chosen([nil, 5, 5, 5, 5]) { $0.max = 3 } == [0, 1, 2])
    // The sum of small changes counts.
    #expect(
      try chosen([nil, 6, 6, 11, 6, 6]) {
        ($0.minChange, $0.max) = (10, 2)
      } == [0, 2])
  }

  @Test func tokensLimitTheNumber() throws {
    // 160 × 160 ÷ 750, rounded up.
    #expect(PictureChoice.tokens(of: Self.size) == 35)
    #expect(PictureChoice.tokens(of: PixelSize(width: 750, height: 1)) == 1)
    #expect(try chosen([nil, 5, 90, 7]) { $0.maxTokens = 105 } == [0, 2, 3])
    #expect(try chosen([nil, 5, 90, 7]) { $0.maxTokens = 104 } == [0, 2])
    // 80 × 80 pixels have 9 tokens.
    #expect(
      try chosen([nil, 5, 90, 7]) {
        ($0.maxTokens, $0.maxSide) = (35, 80)
      } == [0, 2, 3])
    #expect(throws: TooManyTokens(tokens: 35, limit: 34)) { try chosen([nil]) { $0.maxTokens = 34 } }
  }

  // MARK: the pictures of a session

  private func captured(_ segments: [PublishedSegment], _ range: Range<Int64>) -> [CapturedPicture] {
    CapturedPicture.all(
      of: ClippedSession(segments: segments, bounds: range, range: range, warnings: []))
  }

  private func frame(_ timeMs: Int64, _ holdMs: Int64, isCaptured: Bool = true, _ changed: Int? = nil)
    -> PublishedSegment.Frame
  {
    PublishedSegment.Frame(timeMs: timeMs, holdMs: holdMs, isCaptured: isCaptured, changedBlocks: changed)
  }

  @Test func picturesAreOnScreenAsInAFilm() {
    let segments = [
      PublishedSegment.made(1_000, 6_000).showing([frame(1_000, 2_000), frame(3_000, 3_000, 1)]),
      // A continued picture stays, and a gap follows it.
      PublishedSegment.made(6_000, 8_000, gapAfterMs: 3_000).showing([frame(3_000, 2_000, isCaptured: false, 0)]),
      // The next batch begins 100 ms late.
      PublishedSegment.made(11_000, 12_000, batch: "b").showing([frame(11_000, 1_000)]),
      PublishedSegment.made(12_100, 13_000, batch: "c").showing([frame(12_100, 900)]),
    ]
    let found = captured(segments, 1_000..<13_000)
    #expect(found.map(\.timeMs) == [1_000, 3_000, 11_000, 12_100])
    #expect(found.map(\.shownMs) == [1_000..<3_000, 3_000..<8_000, 11_000..<12_100, 12_100..<13_000])
    #expect(found.map(\.change) == [.unknown, .exact(1), .unknown, .unknown])
    // Those that are on screen in a part.
    #expect(captured(segments, 2_999..<3_001).map(\.timeMs) == [1_000, 3_000])
    #expect(captured(segments, 8_000..<11_000).isEmpty)
    // A part begins in a continued picture.
    #expect(captured(Array(segments[1...]), 7_000..<8_000).map(\.timeMs) == [3_000])
  }

  /// Changes count from the picture before in the batch, which is not the one on screen before.
  @Test func overlappingBatchesTakeTurns() {
    let segments = [
      PublishedSegment.made(1_000, 2_000, batch: "a", part: 1, parts: 3).showing([frame(1_000, 1_000)]),
      PublishedSegment.made(2_000, 3_000, batch: "b", part: 1, parts: 2).showing([frame(2_000, 1_000)]),
      PublishedSegment.made(3_000, 4_000, batch: "a", part: 2, parts: 3).showing([frame(3_000, 1_000, 0)]),
      // The last picture of "b", which goes on.
      PublishedSegment.made(4_000, 5_000, batch: "b", part: 2, parts: 2).showing([
        frame(2_000, 500, isCaptured: false, 0), frame(4_500, 500, 0),
      ]),
      PublishedSegment.made(5_000, 6_000, batch: "a", part: 3, parts: 3).showing([frame(5_000, 1_000, 0)]),
    ]
    let found = captured(segments, 1_000..<6_000)
    #expect(found.map(\.change) == [.unknown, .unknown, .unknown, .unknown, .exact(0), .unknown])
    #expect(found.map(\.shownMs.lowerBound) == [1_000, 2_000, 3_000, 4_000, 4_500, 5_000])
    #expect(found.map(\.timeMs) == [1_000, 2_000, 3_000, 2_000, 4_500, 5_000])
  }

  @Test func pictureWithoutTimeOnScreenIsNone() {
    // The next batch begins before the last picture of this one was to come.
    let segments = [
      PublishedSegment.made(1_000, 2_400).showing([frame(1_000, 1_000), frame(2_000, 400)]),
      PublishedSegment.made(2_000, 3_000, batch: "b").showing([frame(2_000, 1_000)]),
    ]
    let found = captured(segments, 1_000..<3_000)
    #expect(found.map(\.segment) == [0, 1] && found.map(\.shownMs) == [1_000..<2_000, 2_000..<3_000])
  }

  @Test func nameIsTheCapture() {
    #expect(PictureFacts.name(1_767_859_512_340) == "2026-01-08T08-05-12.340Z")
  }
}
