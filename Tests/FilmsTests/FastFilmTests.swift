import TestSupport
import Testing

@testable import Encoding
@testable import Films
@testable import ISOMedia

/// The pictures that a film at a high speed leaves out.
@Suite struct FastFilmTests {
  /// A segment of captures.
  ///
  /// - Parameter captures: in unix milliseconds; one before the start is continued.
  private static func segment(_ range: Range<Int64>, _ captures: [Int64], gapAfterMs: Int64 = 0) -> PublishedSegment {
    let starts = captures.map { max($0, range.lowerBound) }
    let frames = zip(captures, zip(starts, starts.dropFirst() + [range.upperBound])).map { capture, hold in
      PublishedSegment.Frame(timeMs: capture, holdMs: hold.1 - hold.0, isCaptured: capture >= range.lowerBound)
    }
    return PublishedSegment(
      batch: "a", batchDigest: "a", part: 1, parts: 1, startMs: range.lowerBound, endMs: range.upperBound, width: 2,
      height: 2, codedWidth: 2, codedHeight: 2, bytes: 1, sha256: "", samples: frames.count, frames: frames,
      intervalMs: 1_000, gapAfterMs: gapAfterMs, isFinal: false, encoder: .null)
  }

  private static func plan(
    _ segments: [PublishedSegment], speed: String, gaps: GapRule = .hold, range: Range<Int64>? = nil
  ) throws -> StitchPlan {
    StitchPlan(segments, gaps: gaps, range: range, speed: try #require(FilmSpeed(speed)))
  }

  /// Film start + length (of which gap), the segment, how much earlier its first picture is shown, and whether others are not.
  private static func parts(_ plan: StitchPlan) -> [String] {
    plan.parts.map {
      "\($0.startMs)+\($0.lengthMs)" + ($0.gapMs > 0 ? " (\($0.gapMs))" : "") + " of \($0.segment.startMs)"
        + ($0.earlyMs > 0 ? " early \($0.earlyMs)" : "") + ($0.isOnlyFirst ? " first" : "")
    }
  }

  /// Captures each second, five in a segment.
  private static let seconds = (0..<400).map { number in
    segment(number * 5_000..<(number + 1) * 5_000, (0..<5).map { number * 5_000 + $0 * 1_000 })
  }

  @Test(arguments: ["0.1", "1", "50", "100"]) func slowerFilmsKeepAll(speed: String) throws {
    let plan = try Self.plan(Self.seconds, speed: speed)
    #expect(plan.parts.count == 400 && plan.leftOut == 0 && plan.omissions(in: "film.mp4") == [])
    #expect(plan.parts.allSatisfy { !$0.isOnlyFirst && $0.earlyMs == 0 && $0.lengthMs == 5_000 })
  }

  @Test func segmentsOfSixtiethsOfASecondShowAllTheirPictures() throws {
    // Five pictures in a thirtieth of a second are 150 a second.
    let plan = try Self.plan(Self.seconds, speed: "150")
    #expect(plan.parts.count == 400 && plan.leftOut == 0 && plan.parts.allSatisfy { !$0.isOnlyFirst })
  }

  @Test(arguments: [("301", 399, 1_601), ("1000", 120, 1_880), ("100000", 2, 1_998)])
  func shorterOnesShowTheFirst(speed: String, parts: Int, leftOut: Int) throws {
    let plan = try Self.plan(Self.seconds, speed: speed)
    #expect(plan.parts.count == parts && plan.leftOut == leftOut && plan.captures == 2_000)
    #expect(plan.parts.allSatisfy { $0.isOnlyFirst })
    #expect(plan.parts.reduce(0) { $0 + $1.lengthMs } == 2_000_000 && plan.parts[0].startMs == 0)
    #expect(zip(plan.parts, plan.parts.dropFirst()).allSatisfy { $0.startMs + $0.lengthMs == $1.startMs })
    // Each is on screen for at least a picture's time on average, and at none earlier than it was captured.
    #expect(plan.parts.allSatisfy { $0.startMs == $0.segment.startMs })
    #expect(
      plan.omissions(in: "film.mp4").map(\.what) == [
        "\(leftOut) of 2000 pictures are left out: at speed \(plan.speed), no screen shows them"
      ])
  }

  @Test func crowdedSegmentShowsItsFirstPicture() throws {
    // 30 pictures a second for ten seconds, in segments of five, then a still.
    let crowded = (0..<2).map { number in
      Self.segment(number * 5_000..<(number + 1) * 5_000, (0..<150).map { number * 5_000 + $0 * 100 / 3 })
    }
    let still = Self.segment(10_000..<1_000_000, [10_000])
    let plan = try Self.plan(crowded + [still], speed: "120")
    #expect(Self.parts(plan) == ["0+5000 of 0 first", "5000+5000 of 5000 first", "10000+990000 of 10000"])
    #expect(plan.leftOut == 298)
  }

  /// A picture a minute that stays: segments that continue it are left out, but for one in a quarter of a second.
  @Test func continuedPicturesAreNotShownAgain() throws {
    let minutes = (0..<60).flatMap { minute in
      (0..<12).map { piece -> PublishedSegment in
        let start = Int64(minute) * 60_000 + Int64(piece) * 5_000
        return Self.segment(start..<start + 5_000, [Int64(minute) * 60_000])
      }
    }
    for (speed, parts) in [("2880", 60), ("3600", 60)] {
      let plan = try Self.plan(minutes, speed: speed)
      #expect(plan.parts.count == parts && plan.leftOut == 0 && plan.captures == 60)
      #expect(plan.parts.map { $0.startMs } == (0..<60).map { $0 * 60_000 })
      // A grid of sixtieths may meet a continued segment: its picture is shown from its capture on.
      #expect(plan.parts.allSatisfy { $0.segment.startMs - $0.earlyMs == $0.startMs })
    }
    // A minute is half a second of this film, so each picture has two samples.
    #expect(try Self.plan(minutes, speed: "120").parts.count == 120)
  }

  @Test func gapsStayWhereTheyAre() throws {
    // Five seconds of each minute are shown.
    let minutes = (0..<10).map { minute in
      Self.segment(
        Int64(minute) * 60_000..<Int64(minute) * 60_000 + 5_000, [Int64(minute) * 60_000], gapAfterMs: 55_000)
    }
    let plan = try Self.plan(minutes, speed: "1000")
    #expect(Self.parts(plan) == (0..<10).map { "\($0 * 60_000)+60000 (55000) of \($0 * 60_000)" })
    // No chapter for gaps of less than a second of the film.
    #expect(plan.chapters == [])
    let fast = try Self.plan(minutes, speed: "10000")
    let shown = [(0, 120_000), (120_000, 180_000), (300_000, 180_000), (480_000, 120_000)]
    #expect(Self.parts(fast) == shown.map { "\($0)+\($1) (\($1 - 5_000)) of \($0) first" })
    #expect(fast.leftOut == 6)
    let cut = try Self.plan(minutes, speed: "1000", gaps: .cut)
    #expect(cut.durationMs == 50 && cut.parts.reduce(0) { $0 + $1.lengthMs } == 50_000)
    let long = [Self.segment(0..<5_000, [0], gapAfterMs: 1_000_000), Self.segment(1_005_000..<1_010_000, [1_005_000])]
    #expect(try Self.plan(long, speed: "200").namedMap(of: "").movieChapters.map(\.startMs) == [0, 25, 5_025])
  }

  @Test func clipBeginsWithThePictureOnScreen() throws {
    let plan = try Self.plan(Self.seconds, speed: "1000", range: 7_500..<1_007_500)
    #expect(plan.shown == 7_500..<1_007_500 && plan.durationMs == 1_000)
    #expect(plan.parts[0].skippedMs == 2_500 && plan.parts[0].segment.startMs == 5_000)
    #expect(plan.captures == 1_001)
  }

  /// However short, a film shows its first picture.
  @Test func filmOfLessThanATickShowsItsFirstPicture() throws {
    let plan = try Self.plan([Self.segment(0..<500, [0]), Self.segment(500..<900, [500])], speed: "100000")
    #expect(Self.parts(plan) == ["0+900 of 0 first"] && plan.leftOut == 1)
  }

  /// The times of any film: parts follow each other, no picture is shown early, and none that a screen would show is missing.
  @Test func eachScreenShowsAPictureOfItsSegment() throws {
    var random = Random(seed: 49)
    for _ in 0..<200 {
      var segments: [PublishedSegment] = []
      var now: Int64 = 0
      var last: Int64 = 0
      for _ in 0..<random.int(1...60) {
        let end = now + (random.once(in: 3) ? 5_000 : random.int(1...20_000))
        var captures = (0..<random.int(0...12)).map { _ in random.int(now...end - 1) }
        captures = Set(captures).sorted()
        if captures.first != now { captures.insert(segments.isEmpty ? now : last, at: 0) }
        let gapMs = random.once(in: 5) ? random.int(1...100_000) : 0
        segments.append(Self.segment(now..<end, captures, gapAfterMs: gapMs))
        last = captures[captures.count - 1]
        now = end + gapMs
        if gapMs > 0 { last = now }
      }
      let speed = try #require(FilmSpeed("\(random.int(101...100_000))"))
      let plan = StitchPlan(segments, gaps: .hold, speed: speed)
      #expect(plan.parts[0].startMs == 0 && plan.parts.reduce(0) { $0 + $1.lengthMs } == now)
      func tick(_ ms: Int64) -> Int64 { speed.film(MediaTime.ticks(ms: ms)) }
      for (part, next) in zip(plan.parts, plan.parts.dropFirst()) {
        #expect(part.startMs + part.lengthMs == next.startMs && tick(part.startMs) < tick(next.startMs))
      }
      for part in plan.parts {
        #expect(tick(part.startMs) >= tick(part.frames.first?.timeMs ?? .max))
        #expect(part.lengthMs - part.earlyMs - part.gapMs > 0)
      }
      #expect(plan.leftOut >= 0 && plan.leftOut < plan.captures)
      for screen in stride(from: Int64(0), to: tick(now), by: 1_500) {
        let part = try #require(plan.parts.last { tick($0.startMs) <= screen })
        let on = try #require(segments.last { tick($0.startMs) <= screen })
        let starts = part.segment.startsOfFrames.map { tick(part.startMs + part.earlyMs + $0) }
        let index = part.isOnlyFirst ? 0 : starts.lastIndex { $0 <= screen } ?? 0
        let shown = part.frames[part.frames.startIndex + index]
        #expect(on.frames.contains { $0.timeMs == shown.timeMs }, "\(screen): \(part) for \(on)")
      }
    }
  }
}
