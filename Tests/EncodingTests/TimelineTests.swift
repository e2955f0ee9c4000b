import Testing

@testable import Encoding
@testable import FileSystem

/// Applies the segment rules to captures (milliseconds from 0). All have one size unless `sizes` differs.
private func holds(
  _ instants: [Int64], endMs: Int64, intervalMs: Int64 = 1_000, maxHoldMs: Int64? = 5_000,
  segmentMs: Int64 = 5_000, sizes: [Int64: (Int, Int)] = [:]
) -> [FrameHold] {
  var timeline = Timeline(intervalMs: intervalMs, maxHoldMs: maxHoldMs, segmentMs: segmentMs)
  var result: [FrameHold] = []
  for instant in instants {
    let (width, height) = sizes[instant] ?? (4, 8)
    result += timeline.append(
      Capture(source: "\(instant)", timeMs: instant, width: width, height: height))
  }
  return result + timeline.finish(endMs: endMs)
}

/// Returns the same numbers in every run.
private struct SeededGenerator: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    // SplitMix64
    state &+= 0x9E37_79B9_7F4A_7C15
    var value = state
    value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
    return value ^ value >> 31
  }
}

/// Returns the segments as text: `start: capture+hold capture+hold … (gap)`. A star follows a continued capture.
private func segments(_ holds: [FrameHold]) -> [String] {
  var result: [String] = []
  for hold in holds {
    let star = hold.status == .continued ? "*" : ""
    let text = " \(hold.capture.timeMs)\(star)+\(hold.holdMs)"
    if hold.opensSegment { result.append("\(hold.startMs):") }
    result[result.count - 1] += text
    if let gapMs = hold.closingGapMs, gapMs > 0 { result[result.count - 1] += " (\(gapMs))" }
  }
  return result
}

@Suite struct TimelineTests {
  @Test func exactCapturesMakeExactSegments() {
    let all = holds((0..<11).map { $0 * 1_000 }, endMs: 11_000)
    #expect(
      segments(all) == [
        "0: 0+1000 1000+1000 2000+1000 3000+1000 4000+1000",
        "5000: 5000+1000 6000+1000 7000+1000 8000+1000 9000+1000",
        "10000: 10000+1000",
      ])
    #expect(
      all.map { $0.closingGapMs != nil }
        == [4, 9, 10].reduce(into: Array(repeating: false, count: 11)) { $0[$1] = true })
    #expect(all.last?.closingGapMs == 0)
  }

  @Test func everyHoldLastsUntilTheNextCapture() {
    #expect(segments(holds([7, 1_019, 1_987], endMs: 3_010)) == ["7: 7+1012 1019+968 1987+1023"])
  }

  @Test func aSegmentClosesBeforeTheFirstFrameHalfAnIntervalBeforeFiveSeconds() {
    #expect(segments(holds([0, 4_499, 5_000], endMs: 6_000)) == ["0: 0+4499 4499+501", "5000: 5000+1000"])
    #expect(segments(holds([0, 4_500], endMs: 5_500)) == ["0: 0+4500", "4500: 4500+1000"])
  }

  @Test func halfOfAnOddIntervalIsNotRounded() {
    // 5000 − 333/2 = 4833.5
    #expect(
      segments(holds([0, 4_833, 5_166], endMs: 5_499, intervalMs: 333)) == ["0: 0+4833 4833+333", "5166: 5166+333"])
    #expect(segments(holds([0, 4_834], endMs: 5_167, intervalMs: 333)) == ["0: 0+4834", "4834: 4834+333"])
  }

  @Test func holdAboveFiveSecondsIsSplitAndContinued() {
    #expect(segments(holds([0, 4_400, 5_500], endMs: 6_500)) == ["0: 0+4400 4400+1100", "5500: 5500+1000"])
    #expect(
      segments(holds([0, 4_400, 5_501], endMs: 6_500)) == ["0: 0+4400 4400+600", "5000: 4400*+501 5501+999"])
  }

  @Test func aLongHoldWithoutGapsBecomesManySegments() {
    #expect(
      segments(holds([0, 12_700], endMs: 13_000, maxHoldMs: nil)) == [
        "0: 0+5000", "5000: 0*+5000", "10000: 0*+2700 12700+300",
      ])
  }

  @Test func timeBeyondTheMaximumHoldIsAGap() {
    #expect(
      segments(holds([0, 1_000, 9_000], endMs: 10_000)) == [
        "0: 0+1000 1000+4000", "5000: 1000*+1000 (3000)", "9000: 9000+1000",
      ])
    #expect(segments(holds([0, 5_000], endMs: 6_000)) == ["0: 0+5000", "5000: 5000+1000"])
    #expect(segments(holds([0, 5_001], endMs: 6_001)) == ["0: 0+5000 (1)", "5001: 5001+1000"])
  }

  @Test func maximumHoldAtTheEndOfTheBatchIsFollowedByAGap() {
    #expect(segments(holds([0], endMs: 8_000)) == ["0: 0+5000 (3000)"])
    #expect(segments(holds([0, 1_000], endMs: 3_000, maxHoldMs: 1_500)) == ["0: 0+1000 1000+1500 (500)"])
  }

  @Test func aChangeOfSizeOpensASegment() {
    let all = holds([0, 1_000, 2_000, 3_000], endMs: 4_000, sizes: [1_000: (8, 4), 2_000: (8, 4)])
    #expect(segments(all) == ["0: 0+1000", "1000: 1000+1000 2000+1000", "3000: 3000+1000"])
  }

  @Test func aSegmentOfAnotherLengthClosesBeforeTheFirstFrameNearIt() {
    let all = holds((0..<5).map { $0 * 60_000 }, endMs: 300_000, intervalMs: 60_000, maxHoldMs: nil, segmentMs: 120_000)
    #expect(
      segments(all) == ["0: 0+60000 60000+60000", "120000: 120000+60000 180000+60000", "240000: 240000+60000"])
  }

  @Test func aHoldBecomesAsFewEvenPiecesAsTheLengthAllows() {
    func pieces(_ holdMs: Int64, segmentMs: Int64, intervalMs: Int64 = 1_000) -> [String] {
      segments(holds([0], endMs: holdMs, intervalMs: intervalMs, maxHoldMs: nil, segmentMs: segmentMs))
    }
    #expect(pieces(10_500, segmentMs: 10_000) == ["0: 0+10500"])
    #expect(pieces(14_000, segmentMs: 10_000) == ["0: 0+7000", "7000: 0*+7000"])
    #expect(pieces(20_000, segmentMs: 10_000) == ["0: 0+10000", "10000: 0*+10000"])
    #expect(pieces(20_002, segmentMs: 10_000) == ["0: 0+6667", "6667: 0*+6667", "13334: 0*+6668"])
    #expect(pieces(60_000, segmentMs: 10_000, intervalMs: 60_000).count == 6)
    #expect(pieces(86_400_000, segmentMs: 600_000).count == 144)
  }

  @Test func theFirstPieceFillsASegmentWithoutRoomForAnEvenOne() {
    #expect(
      segments(holds([0, 8_000], endMs: 30_000, maxHoldMs: nil, segmentMs: 10_000)) == [
        "0: 0+8000 8000+2000", "10000: 8000*+10000", "20000: 8000*+10000",
      ])
    #expect(
      segments(holds([0, 2_000], endMs: 14_000, maxHoldMs: nil, segmentMs: 10_000)) == [
        "0: 0+2000 2000+6000", "8000: 2000*+6000",
      ])
  }

  @Test func holdsOfAnyLengthOfSegmentAddUp() {
    var generator = SeededGenerator(state: 7)
    for _ in 0..<300 {
      let (segmentMs, intervalMs) = (
        1_000 * Int64.random(in: 1...600, using: &generator), Int64.random(in: 1...90_000, using: &generator)
      )
      var now: Int64 = 0
      let instants = (0..<Int.random(in: 1...20, using: &generator)).map { _ in
        defer { now += Int64.random(in: 1...200_000, using: &generator) }
        return now
      }
      let end = instants.last! + Int64.random(in: 1...900_000, using: &generator)
      let all = holds(instants, endMs: end, intervalMs: intervalMs, maxHoldMs: nil, segmentMs: segmentMs)
      #expect(all.map(\.endMs).dropLast() == all.map(\.startMs).dropFirst() && all.last?.endMs == end)
      #expect(all.allSatisfy { $0.holdMs > 0 && 2 * ($0.holdMs - segmentMs) <= intervalMs })
      for (capture, next) in zip(instants, instants.dropFirst() + [end]) {
        let pieces = all.filter { $0.capture.timeMs == capture }.map(\.holdMs)
        let even = segmentMs == 5_000 ? [] : pieces.count > 1 ? pieces.dropFirst() : []
        #expect((even.max() ?? 0) - (even.min() ?? 0) <= 1, "\(pieces)")
        #expect(Int64(pieces.count) <= (next - capture) / segmentMs + 2)
      }
    }
  }

  @Test func holdsAddUpToTheWholeWithoutGaps() {
    var generator = SeededGenerator(state: 42)
    for _ in 0..<200 {
      var now = Int64.random(in: 0...1_000, using: &generator)
      let instants = (0..<Int.random(in: 1...40, using: &generator)).map { _ in
        defer { now += Int64.random(in: 1...9_000, using: &generator) }
        return now
      }
      let end = instants.last! + Int64.random(in: 1...9_000, using: &generator)
      let all = holds(instants, endMs: end, intervalMs: Int64.random(in: 1...2_000, using: &generator))
      var expected = instants[0]
      for hold in all {
        #expect(hold.startMs == expected)
        #expect(hold.holdMs > 0)
        expected = hold.endMs + (hold.closingGapMs ?? 0)
      }
      #expect(expected == end)
      #expect(all.filter { $0.status == .captured }.map(\.startMs) == instants)
      #expect(all.filter(\.opensSegment).count == all.filter { $0.closingGapMs != nil }.count)
    }
  }
}
