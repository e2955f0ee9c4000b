import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import Sessions

/// An extended track equals a track that is built from scratch.
@Suite struct ThumbnailTrackTests {
  /// Makes segments of several batches, with early and late starts and with gaps inside and between batches.
  private func segments(_ count: Int, _ random: inout Random) -> [PublishedSegment] {
    var now: Int64 = 1_767_859_512_340
    return (0..<count).map { number in
      let lengthMs = random.int(1_000...5_000)
      let gapMs = random.once(in: 4) ? random.int(1...9_000) : 0
      let segment = PublishedSegment.made(
        now, now + lengthMs, batch: "\(number / 3)", gapAfterMs: gapMs, captured: [random.once(in: 2), true])
      now += lengthMs + gapMs + (number % 3 == 2 ? random.int(-90...800) : 0)
      return segment
    }
  }

  private func text(_ segments: [PublishedSegment], damaged: Set<Int>) -> String {
    var track = ThumbnailTrack(startMs: segments[0].startMs)
    for (index, segment) in segments.enumerated() { track.append(segment, isShown: !damaged.contains(index)) }
    return String(decoding: track.text, as: UTF8.self)
  }

  @Test(arguments: 1...20)
  func extendedTrackEqualsARebuiltTrack(seed: Int) throws {
    var random = Random(seed: seed)
    let all = segments(Int(random.int(2...30)), &random)
    let split = Int(random.int(1...Int64(all.count - 1)))
    let damaged = Set((0..<all.count).filter { _ in random.once(in: 6) })
    let before = Array(text(Array(all[..<split]), damaged: damaged).utf8)
    let track = ThumbnailTrack(startMs: all[0].startMs, continuing: before, after: all[split - 1])
    // A track cannot be extended after a segment without thumbnails.
    guard !damaged.contains(split - 1) else {
      #expect(track == nil)
      return
    }
    var grown = try #require(track)
    for index in split..<all.count { grown.append(all[index], isShown: !damaged.contains(index)) }
    #expect(String(decoding: grown.text, as: UTF8.self) == text(all, damaged: damaged))
  }

  @Test func cuesDoNotOverlapAndCoverAllButGaps() throws {
    for seed in 1...20 {
      var random = Random(seed: seed)
      let all = segments(20, &random)
      let lines = text(all, damaged: []).split(separator: "\n").filter { $0.contains(" --> ") }
      // All times have the same length, so they sort as text.
      let times = lines.map { $0.split(separator: " ").filter { $0 != "-->" }.map(String.init) }
      #expect(times.count == 2 * all.count)
      let gaps = zip(all, all.dropFirst()).count { $0.gap(before: $1) != nil }
      #expect(zip(times, times.dropFirst()).allSatisfy { $0[0] < $0[1] && $0[1] <= $1[0] })
      #expect(zip(times, times.dropFirst()).count { $0[1] != $1[0] } == gaps)
    }
  }

  @Test func mismatchedTrackIsNotExtended() throws {
    let (one, two) = (PublishedSegment.made(1_000, 3_000), PublishedSegment.made(3_000, 5_000))
    let text = Array(text([one, two], damaged: []).utf8)
    #expect(ThumbnailTrack(startMs: 1_000, continuing: text, after: two) != nil)
    #expect(ThumbnailTrack(startMs: 1_000, continuing: text, after: one) == nil)
    #expect(ThumbnailTrack(startMs: 0, continuing: text, after: two) == nil)
    #expect(ThumbnailTrack(startMs: 1_000, continuing: Array(text.dropLast()), after: two) == nil)
    #expect(ThumbnailTrack(startMs: 1_000, continuing: Array(text.dropFirst()), after: two) == nil)
    #expect(ThumbnailTrack(startMs: 1_000, continuing: [], after: two) == nil)
  }

  @Test(arguments: [(1, 1, 1), (10, 10, 1), (11, 11, 2), (100, 100, 10), (101, 51, 6), (3_600, 100, 10)])
  func aSpriteIsBounded(frames: Int, pictures: Int, rows: Int) {
    let segment = PublishedSegment.made(0, 5_000_000, captured: Array(repeating: true, count: frames))
    let sprite = SegmentSprite(segment)
    #expect(sprite.frames.count == pictures)
    #expect(sprite.grid.whole.height == 16 * rows)
    #expect((0..<frames).allSatisfy { sprite.tile(of: $0) < pictures && sprite.frames[sprite.tile(of: $0)] <= $0 })
  }
}
