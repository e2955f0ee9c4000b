import FrameBatches
import JSON
import TestSupport
import Testing

@testable import Encoding
@testable import Films
@testable import ISOMedia
@testable import Sessions

/// Film time to capture time, and back.
@Suite struct FilmMapTests {
  private static let session = [
    PublishedSegment.made(1_000, 6_000), PublishedSegment.made(6_000, 8_000, gapAfterMs: 3_000),
    PublishedSegment.made(11_000, 12_000), PublishedSegment.made(11_700, 14_000, batch: "b"),
    PublishedSegment.made(14_400, 75_000, batch: "c", gapAfterMs: 250),
  ]

  private static func plan(
    speed: String = "1", gaps: GapRule = .hold, idle: String? = nil, range: Range<Int64>? = nil
  ) throws -> StitchPlan {
    StitchPlan(
      session, gaps: gaps, range: range, speed: try #require(FilmSpeed(speed)),
      idle: try idle.map { try #require(IdleRule($0)) }
    ) { _, _ in false }
  }

  /// The pieces as text: film and capture.
  private static func pieces(_ map: FilmMap) -> [String] {
    map.pieces.map {
      "\($0.film.lowerBound)..<\($0.film.upperBound) = \($0.unix.lowerBound)..<\($0.unix.upperBound)"
    }
  }

  @Test func piecesAreTheTimeThatTheFilmShows() throws {
    #expect(Self.pieces(try Self.plan().map) == ["0..<74250 = 1000..<75250"])
    #expect(
      Self.pieces(try Self.plan(gaps: .cut).map) == ["0..<7000 = 1000..<8000", "7000..<71000 = 11000..<75000"])
    #expect(
      Self.pieces(try Self.plan(gaps: .cut, range: 7_000..<11_500).map)
        == ["0..<1000 = 7000..<8000", "1000..<1500 = 11000..<11500"])
    // The pictures at 1 000, 6 000, 11 000, 11 700 and 14 400.
    #expect(
      Self.pieces(try Self.plan(idle: "cut").map) == [
        "0..<1000 = 1000..<2000", "1000..<2000 = 6000..<7000", "2000..<3700 = 11000..<12700",
        "3700..<4700 = 14400..<15400",
      ])
    #expect(
      Self.pieces(try Self.plan(gaps: .cut, idle: "speed=10").map) == [
        "0..<1000 = 1000..<2000", "1000..<1400 = 2000..<6000", "1400..<2400 = 6000..<7000",
        "2400..<2500 = 7000..<8000", "2500..<4200 = 11000..<12700", "4200..<4370 = 12700..<14400",
        "4370..<5370 = 14400..<15400", "5370..<11330 = 15400..<75000",
      ])
  }

  @Test func timeThatIsLeftOutIsOneMomentOfTheFilm() throws {
    let map = try Self.plan(idle: "cut").map
    for (unix, film): (Int64, Int64?) in [
      (999, nil), (1_000, 0), (1_999, 999), (2_000, 1_000), (5_999, 1_000), (6_000, 1_000), (6_001, 1_001),
      (15_399, 4_699), (15_400, 4_700), (75_249, 4_700), (75_250, nil),
    ] { #expect(map.film(ofUnix: unix) == film.map { $0 * 90 }, "\(unix)") }
    for (film, unix): (Int64, Int64?) in [
      (-1, nil), (0, 1_000), (89, 1_000), (90, 1_001), (89_999, 1_999), (90_000, 6_000), (422_999, 15_399),
      (423_000, nil),
    ] { #expect(map.unix(ofFilm: film) == unix, "\(film)") }
    #expect(map.durationTicks == 4_700 * 90)
  }

  /// Any film: both directions agree with the definition, in 10 000 random instants.
  @Test(
    arguments: [
      ("1", nil), ("1", "cut"), ("1", "cut=80"), ("1", "speed=7.3"), ("1", "speed=100"), ("0.1", "cut"),
      ("0.333", "speed=3"),
      ("7.3", "cut=2500"), ("99.999", "cut"), ("24", "speed=4"), ("100000", nil), ("1234.567", nil),
    ] as [(String, String?)])
  func bothDirectionsAreExact(speed: String, idle: String?) throws {
    for gaps in GapRule.allCases {
      let plan = try Self.plan(speed: speed, gaps: gaps, idle: idle)
      let map = plan.map
      let thousandths = Int128(map.speed.thousandths)
      #expect(map.durationTicks / 90 == plan.durationMs && map.shown == plan.shown)
      #expect(map.pieces.first?.film.lowerBound == 0)
      #expect(zip(map.pieces, map.pieces.dropFirst()).allSatisfy { $0.film.upperBound == $1.film.lowerBound })
      #expect(zip(map.pieces, map.pieces.dropFirst()).allSatisfy { $0.unix.upperBound <= $1.unix.lowerBound })
      /// The tick of an instant as a fraction that is rounded down, by one piece after the other.
      func tick(_ unix: Int64) -> Int64 {
        for piece in map.pieces {
          if unix < piece.unix.lowerBound { return Int64(Int128(piece.film.lowerBound) * 90_000 / thousandths) }
          guard unix < piece.unix.upperBound else { continue }
          let (length, since) = (Int128(piece.unix.count), Int128(unix - piece.unix.lowerBound))
          let normal = Int128(piece.film.lowerBound) * length + since * Int128(piece.film.count)
          return Int64(normal * 90_000 / (length * thousandths))
        }
        return map.durationTicks
      }
      var random = Random(seed: 47)
      // An expectation for each instant would take long.
      var faults: [Int64] = []
      func require(_ holds: Bool, _ instant: Int64) { if !holds { faults.append(instant) } }
      var latest: Int64 = 0
      for unix in (0..<10_000).map({ _ in random.int(map.shown.lowerBound...map.shown.upperBound - 1) }).sorted() {
        let film = try #require(map.film(ofUnix: unix))
        require(film == tick(unix) && latest <= film, unix)
        latest = film
        // The way back is the same instant, or the last one of the same tick.
        guard map.pieces.contains(where: { $0.unix.contains(unix) }), let back = map.unix(ofFilm: film) else {
          continue
        }
        require(back >= unix && map.film(ofUnix: back) == film, unix)
        if thousandths <= 90_000, idle?.hasPrefix("speed") != true { require(back == unix, unix) }
      }
      #expect(faults == [])
      for film in (0..<10_000).map({ _ in random.int(0...max(0, map.durationTicks - 1)) }) {
        let unix = try #require(map.unix(ofFilm: film))
        require(tick(unix) <= film, film)
        // The next instant of the film begins later.
        if map.pieces.contains(where: { $0.unix.contains(unix + 1) }) { require(tick(unix + 1) > film, film) }
      }
      #expect(faults == [])
    }
  }

  /// Readers of the JSON get the same numbers, although times of other speeds are rounded to six decimals.
  @Test(arguments: ["1", "0.1", "0.333", "7.3", "99.999", "100000"]) func jsonIsExact(speed: String) throws {
    let plan = try Self.plan(speed: speed, gaps: .cut, idle: speed == "100000" ? nil : "cut")
    let json = try JSONParser.parse(plan.namedMap(of: "s").json.bytes())
    #expect(json.object?["format"]?.string == "film-map/1" && json.object?["session"]?.string == "s")
    #expect(json.object?["fromMs"]?.integer == 1_000 && json.object?["toMs"]?.integer == 75_000)
    #expect(json.object?["durationMs"]?.integer == plan.durationMs)
    let stated = try #require(json.object?["speed"]?.double)
    let pieces = try #require(json.object?["pieces"]?.array)
    #expect(pieces.count == plan.map.pieces.count)
    for (text, piece) in zip(pieces, plan.map.pieces) {
      func normal(_ key: String) throws -> Int64 {
        Int64((try #require(text.object?[key]?.double) * stated).rounded())
      }
      #expect(try normal("filmMs")..<normal("filmEndMs") == piece.film)
      #expect(text.object?["unixMs"]?.integer == piece.unix.lowerBound)
      #expect(text.object?["unixEndMs"]?.integer == piece.unix.upperBound)
      if speed == "1" { #expect(text.object?["filmMs"]?.integer == piece.film.lowerBound) }
    }
  }

  @Test func metadataTrackHasACueForEachPieceAndChapter() throws {
    let plan = try Self.plan(gaps: .cut, range: 7_000..<12_000)
    let text = String(decoding: plan.namedMap(of: "s").track, as: UTF8.self)
    #expect(
      text == """
        WEBVTT

        NOTE film-map/1 s

        00:00:00.000 --> 00:00:01.000
        {"filmEndMs":1000,"filmMs":0,"unixEndMs":8000,"unixMs":7000}

        00:00:00.000 --> 00:00:01.000
        {"filmMs":0,"kind":"start","time":"1970-01-01T00:00:07.000Z","title":"start","unixMs":7000}

        00:00:01.000 --> 00:00:02.000
        {"filmEndMs":2000,"filmMs":1000,"unixEndMs":12000,"unixMs":11000}

        00:00:01.000 --> 00:00:02.000
        {"filmMs":1000,"kind":"after-gap","time":"1970-01-01T00:00:11.000Z","title":"after a gap of 3 s","unixMs":11000}

        """)
  }

  @Test func arrowsInNamesDoNotEndACue() {
    let map = FilmMap([.init(film: 0..<10, unix: 0..<10)], shown: 0..<10, speed: .normal)
    let named = NamedMap(
      session: "s", map: map, chapters: [FilmChapter(kind: .note, unixMs: 0, title: "a --> \n\n b")])
    let lines = String(decoding: named.track, as: UTF8.self).split(separator: "\n")
    #expect(lines.count(where: { $0.contains("-->") }) == 2 && lines.count == 6, "\(lines)")
    #expect(lines.last?.contains(#"a --\u003e \n\n b"#) == true)
  }

  @Test(arguments: [("a.json", true), ("A.JSON", true), ("b.vtt", true), ("c.txt", false), ("json", false)])
  func endingTellsTheKindOfFile(name: String, isOne: Bool) { #expect((MapFile(name) != nil) == isOne) }

  @Test func chaptersAreTagsOfAPlaylist() {
    let chapters = [
      FilmChapter(kind: .start, unixMs: 0, title: "start"),
      FilmChapter(kind: .gap, unixMs: 1_000, unixEndMs: 3_500, title: "gap of 2.500 s"),
      FilmChapter(kind: .afterGap, unixMs: 3_500, title: "after a gap of 2.500 s"),
      FilmChapter(kind: .note, unixMs: 4_000, title: #"a "note""#),
    ]
    let map = FilmMap([.init(film: 0..<9_000, unix: 0..<9_000)], shown: 0..<9_000, speed: .normal)
    #expect(
      NamedMap(session: "s", map: map, chapters: chapters).dateRanges == """
        #EXT-X-DATERANGE:ID="gap-1000-3500",CLASS="segment-encoder.gap",START-DATE="1970-01-01T00:00:01.000Z",DURATION=2.500,X-TITLE="gap of 2.500 s"
        #EXT-X-DATERANGE:ID="note-4000",CLASS="segment-encoder.note",START-DATE="1970-01-01T00:00:04.000Z",X-TITLE="a 'note'"

        """)
  }

  /// A playlist's time has gaps, but not those of more than an hour.
  @Test func playlistSkipsLongGapsOnly() {
    let segments = [
      PublishedSegment.made(1_000, 6_000, gapAfterMs: 2_000),
      PublishedSegment.made(8_000, 9_000, gapAfterMs: 3_600_001),
      PublishedSegment.made(3_609_001, 3_610_001),
    ]
    let map = FilmMap(ofPlaylistOf: segments)
    #expect(Self.pieces(map) == ["0..<8000 = 1000..<9000", "8000..<9000 = 3609001..<3610001"])
  }
}

/// The chapters of a film: gaps, notes and pointer events.
@Suite struct FilmChapterTests {
  private static let segment = PublishedSegment.made(1_000, 61_000)

  private static func marks(_ json: String) throws -> SessionMarks {
    var marks = SessionMarks()
    marks.add(try JSONParser.parse(Array(json.utf8)), of: segment)
    return marks
  }

  @Test func pressesAfterAPauseAndNotesAreChapters() throws {
    let marks = try Self.marks(
      """
      {"frames":[{"timeMs":1000},{"timeMs":2000,"note":"blacked out:\\n no number"},{"timeMs":500,"note":"of another segment"}],
       "touches":{"width":390,"height":844,"events":[[0,"move",0,1,1],[3000,"down",0,120.5,300],[3050,"move",0,121,300],
       [3100,"up",0,121,300],[7000,"down",0,5,5],[7100,"up",0,5,5],[20000,"down",1,7,8.25]]}}
      """)
    let plan = StitchPlan([Self.segment], gaps: .hold, marks: marks)
    #expect(
      plan.namedMap(of: "s").movieChapters == [
        Chapter(startMs: 0, title: "start, 1970-01-01T00:00:01.000Z"),
        Chapter(startMs: 1_000, title: #"blacked out:\n no number, 1970-01-01T00:00:02.000Z"#),
        Chapter(startMs: 3_000, title: "press at 120.5, 300, 1970-01-01T00:00:04.000Z"),
        Chapter(startMs: 20_000, title: "press at 7, 8.25, 1970-01-01T00:00:21.000Z"),
      ])
    #expect(marks.pointersMs == [1_000, 4_000, 4_050, 4_100, 8_000, 8_100, 21_000])
  }

  /// A fact about every picture is said once, and again when it comes back.
  @Test func noteThatLastsIsOneChapter() throws {
    func frames(_ notes: [(Int64, String?)]) throws -> JSONValue {
      let list = notes.map { #"{"timeMs":\#($0)\#($1.map { #","note":"\#($0)""# } ?? "")}"# }
      return try JSONParser.parse(Array(#"{"frames":[\#(list.joined(separator: ","))]}"#.utf8))
    }
    var marks = SessionMarks()
    // Manifests are read in any order.
    marks.add(
      try frames([(61_000, "HDR"), (62_000, "HDR"), (63_000, nil), (64_000, "HDR")]), of: .made(61_000, 65_000))
    marks.add(try frames([(1_000, "HDR"), (2_000, "HDR")]), of: Self.segment)
    #expect(marks.chapters(of: 0..<Int64.max, isWhole: false).map(\.unixMs) == [1_000, 64_000])
  }

  @Test func pagesAreChapters() throws {
    let marks = try Self.marks(#"{"pages":[[0,"https://a.example/one"],[2500,"Cart"]]}"#)
    #expect(
      StitchPlan([Self.segment], gaps: .hold, marks: marks).chapters == [
        FilmChapter(kind: .start, unixMs: 1_000, title: "start"),
        FilmChapter(kind: .navigation, unixMs: 1_000, title: "https://a.example/one"),
        FilmChapter(kind: .navigation, unixMs: 3_500, title: "Cart"),
      ])
  }

  @Test func chaptersOutsideOfAClipAreNotInIt() throws {
    let marks = try Self.marks(#"{"touches":{"width":2,"height":2,"events":[[3000,"down",0,1,1]]}}"#)
    #expect(StitchPlan([Self.segment], gaps: .hold, range: 5_000..<6_000, marks: marks).chapters == [])
    #expect(StitchPlan([Self.segment], gaps: .hold, range: 4_000..<6_000, marks: marks).chapters.count == 2)
  }

  @Test(arguments: ["{}", #"{"touches":[]}"#, #"{"touches":{"width":2,"height":2,"events":[[3000,"jump",0,1,1]]}}"#])
  func brokenEventsAreNoChapters(json: String) throws {
    #expect(try Self.marks(json).chapters(of: 0..<Int64.max, isWhole: false) == [])
  }

  /// An MP4 has 255 chapters. Gaps come first, then notes, then presses.
  @Test func crowdedKindsAreLeftOutAsAWhole() {
    func many(_ kind: FilmChapter.Kind, _ count: Int) -> [FilmChapter] {
      (0..<count).map { FilmChapter(kind: kind, unixMs: Int64($0), title: "") }
    }
    let kinds = { (list: [FilmChapter]) in Set(list.map(\.kind)) }
    #expect(FilmChapter.list([], from: 0) == [])
    let all = FilmChapter.list(many(.pointer, 100) + many(.gap, 50) + many(.note, 104), from: 0)
    #expect(all.count == 255 && kinds(all) == [.start, .gap, .note, .pointer])
    let fewer = FilmChapter.list(many(.pointer, 101) + many(.gap, 50) + many(.note, 104), from: 0)
    #expect(fewer.count == 155 && kinds(fewer) == [.start, .gap, .note])
    #expect(FilmChapter.list(many(.afterGap, 300) + many(.note, 1), from: 0).count == 255)
    #expect(all.map(\.unixMs) == all.map(\.unixMs).sorted() && all[0].kind == .start)
  }
}
