import JSON
import TestSupport
import Testing

@testable import Encoding
@testable import Films
@testable import ISOMedia
@testable import Sessions

/// The idle time that a film shortens. `IdleFilmTests` has its pictures.
@Suite struct StillsTests {
  /// A segment of a batch.
  ///
  /// - Parameter captures: instants in unix milliseconds, each with its changed blocks; one before the start is continued.
  private static func segment(
    _ range: Range<Int64>, _ captures: [(Int64, Int?)], batch: String = "a", part: Int = 1, gapAfterMs: Int64 = 0,
    imported: Bool = false, overlay: [String]? = nil
  ) -> PublishedSegment {
    let starts = captures.map { max($0.0, range.lowerBound) }
    let frames = zip(captures, zip(starts, starts.dropFirst() + [range.upperBound])).map { capture, hold in
      PublishedSegment.Frame(
        timeMs: capture.0, holdMs: hold.1 - hold.0, isCaptured: capture.0 >= range.lowerBound,
        changedBlocks: capture.1)
    }
    return PublishedSegment(
      batch: batch, batchDigest: batch, part: part, parts: 9, startMs: range.lowerBound, endMs: range.upperBound,
      width: 2, height: 2, codedWidth: 2, codedHeight: 2, bytes: 1, sha256: "", samples: frames.count, frames: frames,
      intervalMs: 1_000, gapAfterMs: gapAfterMs, isFinal: false,
      encoder: imported
        ? .object(["imported": .bool(true)])
        : overlay.map { .object(["overlay": .object(["parts": .array($0.map(JSONValue.string))])]) } ?? .null)
  }

  /// The film's pieces as text: film start, and the capture time that is shown.
  private static func pieces(_ plan: StitchPlan) -> [String] {
    plan.map.pieces.map { piece in
      let range = "\(piece.film.lowerBound): \(piece.unix.lowerBound)-\(piece.unix.upperBound)"
      return range + (piece.film.count == piece.unix.count ? "" : " in \(piece.film.count)")
    }
  }

  /// The segments of a film.
  private static func starts(_ plan: StitchPlan) -> [Int64] { plan.parts.map(\.segment.startMs) }

  private static func plan(
    _ segments: [PublishedSegment], _ rule: String = "cut", speed: String = "1", gaps: GapRule = .hold,
    range: Range<Int64>? = nil, pointers: [Int64]? = nil, equalKeys: Bool = false
  ) throws -> StitchPlan {
    var rule = try #require(IdleRule(rule))
    rule.endsAtPointerEvents = pointers != nil
    var marks = SessionMarks()
    for segment in segments {
      let events = (pointers ?? []).filter { segment.startMs <= $0 && $0 < segment.endMs }
      guard !events.isEmpty else { continue }
      marks.add(
        .object([
          "touches": .object([
            "width": .number(2), "height": .number(2),
            "events": .array(
              events.map {
                .array([.number($0 - segment.startMs), .string("move"), .number(0), .number(1), .number(1)])
              }
            ),
          ])
        ]), of: segment)
    }
    return StitchPlan(
      segments, gaps: gaps, range: range, speed: try #require(FilmSpeed(speed)), idle: rule, marks: marks
    ) { _, _ in equalKeys }
  }

  @Test(
    arguments: [
      ("cut", 1_000, nil), ("cut=80", 80, nil), ("cut=3600000", 3_600_000, nil), ("speed=1.001", 1_000, "1.001"),
      ("speed=100", 1_000, "100"),
    ] as [(String, Int64, String?)])
  func ruleIsRead(text: String, keptMs: Int64, speed: String?) throws {
    let rule = try #require(IdleRule(text))
    #expect(rule.keptMs == keptMs && rule.speed?.description == speed && !rule.endsAtPointerEvents)
  }

  @Test(arguments: [
    "", "keep", "cut=", "cut=79", "cut=3600001", "cut=1s", "cut=1000=", "cut=+100", "cut=-1", "speed", "speed=",
    "speed=1", "speed=0.5", "speed=100.001", "Cut", " cut",
  ])
  func otherRulesAreRefused(text: String) { #expect(IdleRule(text) == nil) }

  @Test(arguments: [
    ("cut", "100", true), ("cut", "100.001", false), ("speed=10", "10", true), ("speed=10", "10.001", false),
    ("speed=100", "0.5", true),
  ])
  func fastFilmsKeepIdleTime(rule: String, speed: String, isGood: Bool) throws {
    let rule = try #require(IdleRule(rule))
    #expect((rule.fault(at: try #require(FilmSpeed(speed))) == nil) == isGood)
  }

  /// Four segments of five seconds. One picture is shown from 1 000 to 12 000.
  private static let long = [
    segment(0..<5_000, [(0, nil), (1_000, 7), (2_000, 0), (4_000, 0)]),
    segment(5_000..<10_000, [(5_000, 0), (6_000, 0)], part: 2),
    segment(10_000..<15_000, [(10_000, 0), (12_000, 1), (13_000, 1)], part: 3),
    segment(15_000..<20_000, [(15_000, 3)], part: 4),
  ]

  @Test func stillGoesOnOverSegments() throws {
    let plan = try Self.plan(Self.long)
    // The key frame of the third segment shows the end of the still; the second segment is left out.
    #expect(Self.pieces(plan) == ["0: 0-1960", "1960: 11960-14000", "4000: 15000-16000"])
    #expect(Self.starts(plan) == [0, 10_000, 15_000] && plan.durationMs == 5_000)
    #expect(plan.parts.map(\.lengthMs) == [1_960, 2_040, 1_000] && plan.parts.map(\.startMs) == [0, 1_960, 4_000])
    #expect(plan.shown == 0..<20_000)
  }

  @Test func changeAtTheStartOfASegmentNeedsNoPictureBefore() throws {
    let segments = [
      Self.segment(0..<5_000, [(0, nil)]), Self.segment(5_000..<10_000, [(0, 0)], part: 2),
      Self.segment(10_000..<11_000, [(10_000, 4)], part: 3),
    ]
    let plan = try Self.plan(segments)
    #expect(Self.pieces(plan) == ["0: 0-1000", "1000: 10000-11000"] && Self.starts(plan) == [0, 10_000])
    // The change comes soon after the start of its segment.
    let soon = [segments[0], segments[1], Self.segment(10_000..<12_000, [(0, 0), (10_015, 4)], part: 3)]
    #expect(Self.pieces(try Self.plan(soon)) == ["0: 0-985", "985: 10000-11015"])
    // The first second reaches into the segment with the change.
    let early = [Self.segment(0..<600, [(0, nil)]), Self.segment(600..<9_000, [(0, 0), (5_000, 4)], part: 2)]
    #expect(Self.pieces(try Self.plan(early)) == ["0: 0-1000", "1000: 5000-6000"])
  }

  @Test func stillAtTheEndKeepsItsBeginning() throws {
    let plan = try Self.plan([Self.long[3], Self.segment(20_000..<25_000, [(15_000, 0)], part: 5, gapAfterMs: 700)])
    #expect(Self.pieces(plan) == ["0: 15000-16000"] && plan.shown == 15_000..<25_700 && plan.durationMs == 1_000)
  }

  @Test func clipCutsStills() throws {
    #expect(
      Self.pieces(try Self.plan(Self.long, range: 3_500..<12_500)) == ["0: 3500-4460", "960: 11960-12500"])
    #expect(Self.pieces(try Self.plan(Self.long, range: 6_000..<11_000)) == ["0: 6000-7000"])
    #expect(Self.pieces(try Self.plan(Self.long, range: 500..<1_900)) == ["0: 500-1900"])
  }

  @Test func unknownChangesAreChanges() throws {
    let unknown = [
      Self.segment(0..<5_000, (0..<5).map { ($0 * 1_000, nil) }), Self.segment(5_000..<9_000, [(5_000, nil)], part: 2),
    ]
    #expect(Self.pieces(try Self.plan(unknown)) == ["0: 0-6000"])
    // A segment is missing between them: the number counts from a picture that the film does not show.
    let missing = [Self.segment(0..<5_000, [(0, nil)]), Self.segment(5_000..<9_000, [(5_000, 0)], part: 3)]
    #expect(Self.pieces(try Self.plan(missing)) == ["0: 0-1000", "1000: 5000-6000"])
  }

  /// The first picture of a batch.
  /// Equal pictures differ once a clock is drawn into them.
  @Test(arguments: [(["clock"], false), (["name", "events"], false), (["name"], true)])
  func pictureWithAnotherClockIsAChange(overlay: [String], isIdle: Bool) throws {
    let captures = (0..<5).map { (Int64($0 * 1_000), $0 == 0 ? nil : 0) }
    let plan = try Self.plan([Self.segment(0..<5_000, captures, overlay: overlay)])
    #expect(plan.map.pieces.count == 1 && (plan.durationMs < 5_000) == isIdle)
  }

  @Test(arguments: [true, false]) func onlyEqualKeyFramesJoinBatches(areEqual: Bool) throws {
    let still = Self.segment(0..<5_000, [(0, nil), (1_000, 0)])
    let next = Self.segment(5_000..<10_000, [(5_000, nil), (7_000, 0)], batch: "b")
    let joined = try Self.plan([still, next], equalKeys: areEqual)
    #expect(Self.pieces(joined) == (areEqual ? ["0: 0-1000"] : ["0: 0-1000", "1000: 5000-6000"]))
    // The picture has changed since the key frame.
    let changing = Self.segment(0..<5_000, [(0, nil), (1_000, 2)])
    #expect(
      Self.pieces(try Self.plan([changing, next], equalKeys: areEqual)) == ["0: 0-2000", "2000: 5000-6000"])
    // Not the first segment of its batch.
    let later = Self.segment(5_000..<10_000, [(5_000, 0)], batch: "b", part: 2)
    #expect(Self.pieces(try Self.plan([still, later], equalKeys: areEqual)) == ["0: 0-1000", "1000: 5000-6000"])
  }

  @Test func gapsAreIdleWhereTheFilmHoldsThem() throws {
    let segments = [
      Self.segment(0..<5_000, [(0, nil)], gapAfterMs: 60_000),
      Self.segment(65_000..<70_000, [(65_000, 0), (69_000, 5)], part: 2),
    ]
    #expect(Self.pieces(try Self.plan(segments)) == ["0: 0-960", "960: 68960-70000"])
    #expect(Self.pieces(try Self.plan(segments, gaps: .cut)) == ["0: 0-960", "960: 68960-70000"])
    // Only the gap after the first second, and then a change.
    let change = [
      Self.segment(0..<800, [(0, nil)], gapAfterMs: 60_000), Self.segment(60_800..<61_000, [(60_800, 1)], part: 2),
    ]
    let plan = try Self.plan(change)
    #expect(Self.pieces(plan) == ["0: 0-1000", "1000: 60800-61000"])
    #expect(plan.parts[0].filmGapMs == 200 && plan.parts[0].gapMs == 60_000)
    let names = plan.chapters.map { "\($0.title) \(plan.map.film(ofUnix: $0.unixMs).map { $0 / 90 } ?? -1)" }
    #expect(names == ["start 0", "gap of 60 s 800", "after a gap of 60 s 1000"])
    let fast = try Self.plan(change, "speed=10")
    #expect(Self.pieces(fast) == ["0: 0-1000", "1000: 1000-60800 in 5980", "6980: 60800-61000"])
  }

  @Test func pointerEventsEndStillsOnRequest() throws {
    let segments = [Self.segment(0..<20_000, [(0, nil)]), Self.segment(20_000..<25_000, [(0, 0)], part: 2)]
    #expect(Self.pieces(try Self.plan(segments)) == ["0: 0-1000"])
    #expect(
      Self.pieces(try Self.plan(segments, pointers: [8_000, 8_100, 24_500]))
        == ["0: 0-1000", "1000: 8000-9060", "2060: 24460-25000"])
  }

  /// The samples of another encoder stay as they are.
  @Test func segmentsOfAnotherEncoderKeepTheirTime() throws {
    let segments = [
      Self.segment(0..<5_000, [(0, nil)]),
      Self.segment(5_000..<15_000, [(5_000, nil)], part: 2, gapAfterMs: 2_000, imported: true),
      Self.segment(17_000..<20_000, [(17_000, 0)], part: 3),
    ]
    let plan = try Self.plan(segments)
    #expect(Self.pieces(plan) == ["0: 0-1000", "1000: 5000-18000"] && plan.foreign == 1)
    #expect(
      plan.omissions(in: "film.mp4").map(\.what) == [
        "1 of 3 segments keep their idle time: another encoder has coded them"
      ])
  }

  @Test func restOfAStillMayRunFaster() throws {
    #expect(
      Self.pieces(try Self.plan(Self.long, "speed=10")) == [
        "0: 0-1960", "1960: 1960-5000 in 304", "2264: 5000-10000 in 500", "2764: 10000-11960 in 196",
        "2960: 11960-14000", "5000: 14000-15000 in 100", "5100: 15000-16000", "6100: 16000-20000 in 400",
      ])
  }

  /// In a film at a speed, the last picture of a still lasts as long as at normal speed.
  @Test func shortestTimeIsThatOfTheFilm() throws {
    let plan = try Self.plan(Self.long, "cut=100", speed: "20")
    // 80 ms of the film are 1 600 ms of the session, and 40 ms are 800 ms.
    #expect(Self.pieces(plan) == ["0: 0-1800", "1800: 11200-14600", "5200: 15000-16600"])
  }

  /// Any session: each picture that differs from the one before stays, for as long as it was there or a picture of 25 a second.
  @Test func everyPictureStays() throws {
    var random = Random(seed: 47)
    for round in 0..<300 {
      let segments = Self.random(&random)
      let speed = ["1", "0.5", "3", "20"][Int(random.int(0...3))]
      let rule = ["cut", "cut=80", "cut=5000", "speed=4", "speed=5"][Int(random.int(0...4))]
      let gaps = GapRule.allCases[Int(random.int(0...1))]
      let whole = StitchPlan(segments, gaps: gaps, speed: try #require(FilmSpeed(speed)))
      let plan = try Self.plan(segments, rule, speed: speed, gaps: gaps)
      #expect(plan.shown == whole.shown && plan.parts[0].startMs == 0)
      #expect(zip(plan.parts, plan.parts.dropFirst()).allSatisfy { $0.endMs == $1.startMs })
      #expect(
        plan.parts.allSatisfy { $0.lengthMs > 0 && $0.pieces.reduce(0) { $0 + Int64($1.film.count) } == $0.lengthMs })
      // Changes with the ends of what they show.
      let frames = segments.flatMap { segment in
        zip(segment.frames, segment.startsOfFrames).map { ($0, segment.startMs + $1) }
      }
      let changes = frames.enumerated().filter { index, frame in
        index == 0 || (frame.0.isCaptured && frame.0.changedBlocks != 0)
      }.map(\.element.1)
      let (map, before) = (plan.map, whole.map)
      for (change, next) in zip(changes, changes.dropFirst() + [whole.shown.upperBound]) {
        func ticks(_ map: FilmMap) throws -> Int64 {
          (map.film(ofUnix: next) ?? map.durationTicks) - (try #require(map.film(ofUnix: change)))
        }
        #expect(try ticks(map) >= min(ticks(before), 3_600) - 1, "\(round): \(change), \(rule), \(speed)")
        #expect(try ticks(map) <= ticks(before) + 1)
        #expect(map.unix(ofFilm: try #require(map.film(ofUnix: change))).map { $0 >= change } ?? false)
        // A change in a segment needs its key frame.
        let part = try #require(plan.parts.last { $0.shown.lowerBound <= change })
        #expect(part.shown.contains(change) && part.pieces.contains { $0.unix.contains(change) })
        if change > part.shown.lowerBound {
          #expect(part.film(change - part.shown.lowerBound) > 0, "\(round): no time for the key frame at \(change)")
        }
      }
    }
  }

  /// One batch with captures of which most do not change, some gaps, and holds that continue.
  private static func random(_ random: inout Random) -> [PublishedSegment] {
    var segments: [PublishedSegment] = []
    var now: Int64 = 1_000
    var last: Int64 = now
    for part in 1...Int(random.int(1...12)) {
      let end = now + (random.once(in: 2) ? 5_000 : random.int(60...9_000))
      let instants = Set((0..<random.int(0...8)).map { _ in random.int(now...end - 1) }).sorted()
      var captures: [(Int64, Int?)] = instants.map { ($0, random.once(in: 3) ? 5 : 0) }
      if captures.first?.0 != now {
        captures.insert(part == 1 || last == now ? (now, part == 1 ? nil : 1) : (last, 0), at: 0)
      }
      let gapMs = random.once(in: 4) ? random.int(1_000...100_000) : 0
      segments.append(segment(now..<end, captures, part: part, gapAfterMs: gapMs))
      last = captures[captures.count - 1].0
      now = end + gapMs
      if gapMs > 0 { last = now }
    }
    return segments
  }
}
