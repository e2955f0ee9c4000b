import Foundation
import TestSupport
import Testing

@testable import FileSystem
@testable import FrameBatches
@testable import JSON

/// Batches whose times come from file names, frame numbers or modification times.
@Suite struct FrameTimesTests {
  private let scratch: ScratchDirectory
  private static var jpeg: [UInt8] { get throws { try Fixture("single-frame").bytes("1767859512340.jpg") } }

  init() throws { scratch = try ScratchDirectory() }

  private func batch(_ names: [String], json: String? = nil) throws -> String {
    let path = try scratch.directory("batch-\(UUID().uuidString)")
    for name in names {
      try FileManager.default.createDirectory(
        atPath: (path + "/" + name as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
      try scratch.file(lastComponent(of: path) + "/" + name, Self.jpeg)
    }
    if let json { try scratch.file(lastComponent(of: path) + "/batch.json", Array(json.utf8)) }
    return path
  }

  private func options(
    _ nameTime: String? = nil, times: String? = nil, start: String? = nil, fps: String? = nil, intervalMs: Int64? = nil,
    timeZone: String? = nil
  ) throws -> InputOptions {
    var options = InputOptions(session: "s")
    options.intervalMs = intervalMs
    try options.setTimes(nameTime: nameTime, times: times, start: start, fps: fps, timeZone: timeZone)
    return options
  }

  /// Returns the sessions of a batch, each with the instants of its frames.
  private func read(_ path: String, _ options: InputOptions) throws -> [String: [Int64]] {
    let batch = try BatchSessions(reading: path, options: options)
    return Dictionary(
      uniqueKeysWithValues: batch.readers.map { ($0.batch.session.description, $0.batch.frames.map(\.timeMs)) })
  }

  struct Recorder: Sendable, CustomStringConvertible {
    let description: String
    let names: [String]
    var zone: String?
    let sessions: [String: [Int64]]
  }

  /// 2026-01-08T08:05:12Z is 1767859512.
  static let recorders = [
    Recorder(
      description: "ISO 8601, with a zone",
      names: ["2026-01-08T08:05:12.340Z.jpg", "2026-01-08T09-05-13.34+01:00.jpg", "2026-01-08T08_05_14Z"],
      sessions: ["s": [1_767_859_512_340, 1_767_859_513_340, 1_767_859_514_000]]),
    Recorder(
      description: "ISO 8601, basic", names: ["20260108T080512Z.png", "20260108T080513.5Z.png"],
      sessions: ["s": [1_767_859_512_000, 1_767_859_513_500]]),
    Recorder(
      description: "omi", names: ["2026-01-08/1767859512340.jpg", "2026-01-09/1767945912340.jpg"],
      sessions: ["s": [1_767_859_512_340, 1_767_945_912_340]]),
    Recorder(
      description: "screenpipe",
      names: ["2026-01-08/1767859512340_m1.jpg", "2026-01-08/1767859513340_m2.jpg", "2026-01-08/1767859514340_m1.jpg"],
      sessions: ["s.m1": [1_767_859_512_340, 1_767_859_514_340], "s.m2": [1_767_859_513_340]]),
    Recorder(
      description: "Frigate",
      names: ["preview_front-door-1767859512.3404.webp", "preview_front-door-1767859513.0.webp"],
      sessions: ["front-door": [1_767_859_512_340, 1_767_859_513_000]]),
    Recorder(
      description: "OpenRecall", names: ["1767859512_1.webp", "1767859515_2.webp"],
      sessions: ["s.m1": [1_767_859_512_000], "s.m2": [1_767_859_515_000]]),
    Recorder(
      description: "OpenRecall, before it knew monitors", names: ["1767859512.webp", "1767859515.webp"],
      sessions: ["s": [1_767_859_512_000, 1_767_859_515_000]]),
    Recorder(
      description: "Pensieve", names: ["screenshot-20260108-090512-of-DP-1.webp"], zone: "Europe/Berlin",
      sessions: ["s.mDP-1": [1_767_859_512_000]]),
    Recorder(
      description: "motion",
      names: ["01-20260108090512-01.jpg", "01-20260108090512-00.jpg", "01-20260108090513-00.jpg"],
      zone: "Europe/Berlin", sessions: ["s": [1_767_859_512_000, 1_767_859_512_500, 1_767_859_513_000]]),
    Recorder(
      description: "OSWorld", names: ["step_1_20260108@090512123456.png", "step_2_20260108@090514.png"],
      zone: "+01:00", sessions: ["s": [1_767_859_512_123, 1_767_859_514_000]]),
  ]

  @Test(arguments: recorders) func namesOfARecorderTellInstantsAndSessions(_ recorder: Recorder) throws {
    let path = try batch(recorder.names)
    if recorder.zone != nil {
      let error = #expect(throws: BadBatch.self) { try read(path, options()) }
      #expect(error?.advice.contains("--time-zone") == true)
    }
    #expect(try read(path, options(timeZone: recorder.zone)) == recorder.sessions)
  }

  @Test func framesOfOneSecondAreSpreadInTheOrderOfTheirSequenceWithANote() throws {
    let path = try batch(["1-20260108080512-2.jpg", "1-20260108080512-10.jpg", "1-20260108080512-0.jpg"])
    let frames = try BatchSessions(reading: path, options: options(timeZone: "UTC")).readers[0].batch.frames
    #expect(frames.map(\.source).map { $0.suffix(6) } == ["-0.jpg", "-2.jpg", "10.jpg"])
    #expect(frames.map(\.timeMs) == [1_767_859_512_000, 1_767_859_512_333, 1_767_859_512_666])
    #expect(frames[1].note == "frame 2 of 3 in its second, which were spread over it")
  }

  // MARK: - Patterns

  @Test(
    arguments: [
      ("shot %Y-%m-%d at %H.%M.%S", "shot 2026-01-08 at 08.05.12.png", 1_767_859_512_000),
      ("%*_%s", "cam_7_1767859512.jpg", 1_767_859_512_000),
      ("%*%Q", "frame1767859512340", 1_767_859_512_340),
      ("%d%m%Y%H%M%S%L", "08012026080512340.jpg", 1_767_859_512_340),
      ("100%% %s", "100% 1767859512.5.jpg", 1_767_859_512_500),
      ("%Y%m%d%H%M%S%z", "20260108100512+0200.jpg", 1_767_859_512_000),
    ])
  func aPatternReadsNames(_ pattern: String, _ name: String, _ instant: Int64) throws {
    #expect(try read(batch([name]), options(pattern, timeZone: "UTC")) == ["s": [instant]])
  }

  @Test(
    arguments: ["", "%Y", "%H%M%S", "%s%Q", "%Y%m%d%H%M%S%s", "%k", "%", "%s%s", "%Y%m%d%H%M%S%L%f", "%s%z", "text"])
  func aPatternWithoutExactlyOneTimeIsRefused(_ pattern: String) {
    #expect(throws: InvalidOption.self) { try options(pattern) }
  }

  @Test func groupNamesTheSessionAndAnInvalidNameIsRefusedAlone() throws {
    let path = try batch(["a_1767859512.jpg", "b c_1767859512.jpg", "other.jpg"])
    let batch = try BatchSessions(reading: path, options: options("%g_%s"))
    #expect(batch.readers.map(\.batch.session.description) == ["a"])
    #expect(batch.refused.map(\.session) == ["b c"])
    #expect(batch.readers[0].batch.refused.map(\.source) == ["other.jpg"])
  }

  @Test func ambiguousLongNameIsMatchedInBoundedTime() throws {
    let pattern = try #require(NamePattern("%*1%*1%*1%*1%*1%*1%*1%*1%*1%*1%*%Q"))
    #expect(pattern.match(String(repeating: "1", count: 254) + "x") == nil)
    #expect(pattern.match(String(repeating: "1", count: 256)) == nil)
  }

  @Test func datesThatDoNotExistAreRefused() throws {
    let path = try batch(["20260108T080512Z.png", "20260230T080512Z.png", "20260108T240000Z.png"])
    let frames = try BatchSessions(reading: path, options: options()).readers[0].batch
    #expect(frames.frames.count == 1 && frames.refused.count == 2)
    #expect(frames.refused.allSatisfy { $0.reason == "the name tells a time that does not exist" })
  }

  // MARK: - Zones

  /// Clocks in Berlin went from 02:00 to 03:00 on 29 March 2026, and from 03:00 back to 02:00 on 25 October.
  @Test func skippedLocalHourIsRefused() throws {
    let path = try batch(["20260329T015959.png", "20260329T023000.png", "20260329T030000.png"])
    let found = try BatchSessions(reading: path, options: options(timeZone: "Europe/Berlin")).readers[0].batch
    #expect(found.frames.map(\.timeMs) == [1_774_745_999_000, 1_774_746_000_000])
    #expect(found.refused.map(\.reason) == ["clocks in Europe/Berlin skipped the time in its name"])
  }

  /// Debian's files list the changes of clocks up to 2037.
  @Test func localTimeAfterTheZonesRulesIsRefused() throws {
    let path = try batch(["20370701T120000.png", "20400701T120000.png"])
    let found = try BatchSessions(reading: path, options: options(timeZone: "Europe/Berlin")).readers[0].batch
    #expect(found.frames.map(\.timeMs) == [2_130_055_200_000])
    #expect(found.refused.map { $0.reason.hasPrefix("this system's rules of Europe/Berlin end before") } == [true])
    // Clocks in Tokyo do not change any more.
    let later = try batch(["20400701T120000.png"])
    #expect(try read(later, options(timeZone: "+02:00")) == ["s": [2_224_749_600_000]])
    #expect(try read(later, options(timeZone: "Asia/Tokyo")) == ["s": [2_224_724_400_000]])
  }

  @Test func repeatedLocalHourIsResolvedBySequenceOrRefused() throws {
    // In the order 02:30, 02:50, 02:10, only one assignment of instants never goes back.
    let ordered = [
      "step_1_20261025@013000", "step_2_20261025@023000", "step_3_20261025@025000", "step_4_20261025@021000",
    ]
    #expect(
      try read(batch(ordered), options(timeZone: "Europe/Berlin"))
        == ["s": [1_792_884_600_000, 1_792_888_200_000, 1_792_889_400_000, 1_792_890_600_000]])
    // Both instants are possible.
    let open = ["step_1_20261025@013000", "step_2_20261025@023000", "step_3_20261025@033000"]
    let found = try BatchSessions(reading: batch(open), options: options(timeZone: "Europe/Berlin")).readers[0].batch
    #expect(found.frames.count == 2)
    #expect(found.refused.map(\.source) == ["step_2_20261025@023000"])
    // The time is also ambiguous without a sequence, or if the sequence restarts each second.
    for names in [["20261025T023000", "20261025T030000"], ["1-20261025023000-0", "1-20261025030000-0"]] {
      let found = try BatchSessions(reading: batch(names), options: options(timeZone: "Europe/Berlin")).readers[0].batch
      #expect(found.frames.count == 1 && found.refused.count == 1, "\(names)")
    }
  }

  /// In Chicago, clocks showed the hour from 01:00 twice on 6 November 2022.
  @Test func repeatedHourIsRefusedWithRemediesThatReadTheBatch() throws {
    let names = ["cam-20221106-003000.jpg", "cam-20221106-013000.jpg", "cam-20221106-023000.jpg"]
    let (path, pattern) = (try batch(names), "cam-%Y%m%d-%H%M%S")
    let found = try BatchSessions(reading: path, options: options(pattern, timeZone: "America/Chicago")).readers[0]
      .batch
    #expect(
      found.refused.map(\.reason) == [
        "clocks in America/Chicago showed the time in its name twice, and no sequence tells which it is; "
          + "use --times mtime, or --time-zone -05:00 up to the change of clocks and -06:00 after it"
      ])
    #expect(try read(path, options(times: "mtime"))["s"]?.count == 3)
    #expect(try read(path, options(pattern, timeZone: "-05:00"))["s"]?[1] == 1_667_716_200_000)
    // An archive keeps no exact times.
    try Tool.output("tar", ["-C", path, "-cf", scratch.path("cam.tar"), "."])
    let packed = try BatchSessions(
      reading: scratch.path("cam.tar"), options: options(pattern, timeZone: "America/Chicago")
    ).readers[0].batch
    #expect(packed.refused.map { $0.reason.contains("mtime") } == [false])
  }

  @Test func halfDayClockUnderAPatternOfHoursIsAWarning() throws {
    let path = try batch(["shot 2026-01-08 08.05.12 AM.png", "shot 2026-01-08 08.05.13 PM.png"])
    let found = try BatchSessions(reading: path, options: options("shot %Y-%m-%d %H.%M.%S %*", timeZone: "UTC"))
    #expect(found.readers[0].batch.warnings.map { $0.hasPrefix("2 of 2 names have AM or PM") } == [true])
  }

  @Test func patternWithAFolderIsRefusedBecauseItReadsNamesOnly() throws {
    let error = #expect(throws: InvalidOption.self) { try options("%Y-%m-%d/%H-%M-%S") }
    #expect(error?.cause.contains("and no folders") == true)
  }

  /// Python's zoneinfo reads the same time zone database.
  @Test func localTimesHaveTheInstantsThatPythonFinds() throws {
    let zones = [
      "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "America/Santiago",
      "Africa/Casablanca", "Pacific/Apia", "Asia/Kathmandu", "UTC",
    ]
    // Hours around transitions, and others.
    let program = """
      import json, sys, zoneinfo, datetime as d
      utc = d.timezone.utc
      for zone in sys.argv[1:]:
        z = zoneinfo.ZoneInfo(zone)
        found = []
        for step in range(0, 60000):
          t = d.datetime(2001, 1, 2) + d.timedelta(minutes=877 * step)
          if t.year >= 2037: break
          a, b = (t.replace(tzinfo=z, fold=f) for f in (0, 1))
          near = {(t + d.timedelta(hours=h)).replace(tzinfo=z).utcoffset() for h in (-3, 3)}
          if len(near) == 1 and step % 40: continue
          good = sorted({int(x.timestamp()) for x in (a, b)
            if x.astimezone(utc).astimezone(z).replace(tzinfo=None) == t})
          found.append([int(t.replace(tzinfo=utc).timestamp()), good])
        print(json.dumps([zone, found]))
      """
    let text = try Tool.output(Tool.python, ["-c", program] + zones)
    for line in text.split(separator: 10) {
      let json = try #require(try JSONParser.parse(Array(line)).array)
      let zone = try #require(try ZoneRules(named: json[0].string ?? ""))
      let times = json[1].array ?? []
      #expect(times.count > 500)
      for time in times {
        let (local, instants) = (time.array?[0].integer ?? 0, time.array?[1].array?.compactMap(\.integer) ?? [])
        #expect(zone.instants(atLocal: local) == instants, "\(zone) \(local)")
      }
    }
  }

  @Test(arguments: [
    "Europe/Nowhere", "../etc/passwd", "/etc/passwd", "Europe", "", "+25:00", "Europe/../UTC", "posixrules\u{0}",
  ])
  func zonesThatDoNotExistAreRefused(_ name: String) {
    #expect(throws: InvalidOption.self) { try options(timeZone: name) }
  }

  // MARK: - Numbers and files

  @Test func numbersAreDistancesFromTheStart() throws {
    let path = try batch(["frame_0007.png", "frame_0008.png", "frame_0010.png", "cover.png"])
    #expect(
      try read(path, options(start: "1767859512340", intervalMs: 1_000))
        == ["s": [1_767_859_512_340, 1_767_859_513_340, 1_767_859_515_340]])
    // A frame lasts a third of a second. Rounding errors do not accumulate.
    #expect(
      try read(path, options(start: "2026-01-08T08:05:12.340Z", fps: "3"))
        == ["s": [1_767_859_512_340, 1_767_859_512_673, 1_767_859_513_340]])
    let found = try BatchSessions(reading: path, options: options(start: "1767859512340", fps: "0.5")).readers[0].batch
    #expect(found.intervalMs == 2_000 && found.capture == .onChange)
    #expect(found.refused.map(\.source) == ["cover.png"])
    // Without a start, the advice names the missing option.
    let error = #expect(throws: BadBatch.self) { try BatchSessions(reading: batch(["frame_0007.png"])) }
    #expect(error?.advice.contains("--start") == true)
  }

  @Test func numbersThatCannotBeInstantsAreRefused() throws {
    let path = try batch(["1.png", "9223372036854775807.png", "99999999999999999999.png", "01.png"])
    let found = try BatchSessions(reading: path, options: options(start: "1767859512340", fps: "1")).readers[0].batch
    // 1.png and 01.png have one number: the first of them in the order of the frames is shown.
    #expect(found.frames.map(\.timeMs) == [1_767_859_512_340, 1_767_859_512_340])
    #expect(found.frames.map(\.source) == ["1.png", "01.png"])
    #expect(found.refused.count == 2)
  }

  @Test(
    arguments: [
      ("0", nil), ("1001", nil), ("x", nil), ("1.00001", nil), ("", nil), ("-1", nil), (nil, 0), (nil, nil),
      ("3", 1_000),
    ] as [(String?, Int64?)])
  func startWithoutExactlyOneValidRateIsRefused(_ fps: String?, _ intervalMs: Int64?) {
    #expect(throws: InvalidOption.self) { try options(start: "1767859512340", fps: fps, intervalMs: intervalMs) }
  }

  @Test func timesOfFilesAreUsedOnRequest() throws {
    let path = try batch(["b.png", "a.png"])
    for (name, seconds) in [("b.png", 1_767_859_512.34), ("a.png", 1_767_859_513.5)] {
      try FileManager.default.setAttributes(
        [.modificationDate: Date(timeIntervalSince1970: seconds)], ofItemAtPath: path + "/" + name)
    }
    #expect(throws: BadBatch.self) { try read(path, options()) }
    #expect(try read(path, options(times: "mtime")) == ["s": [1_767_859_512_340, 1_767_859_513_500]])
    try Tool.output("tar", ["-C", path, "-cf", scratch.path("a.tar"), "."])
    let error = #expect(throws: BadBatch.self) { try read(scratch.path("a.tar"), options(times: "mtime")) }
    #expect(error?.advice.contains("unpack") == true)
  }

  // MARK: - batch.json

  @Test func batchJSONSetsTimesAndOverridesOptions() throws {
    let numbered = try batch(
      ["1.png", "2.png"], json: #"{"version":1,"session":"n","start":"2026-01-08T08:05:12Z","fps":2}"#)
    #expect(try read(numbered, options()) == ["n": [1_767_859_512_000, 1_767_859_512_500]])
    #expect(try read(numbered, options(start: "0", fps: "1")) == ["n": [1_767_859_512_000, 1_767_859_512_500]])
    let named = try batch(
      ["x 090512.20260108.png"],
      json: #"{"version":1,"nameTime":"x %H%M%S.%Y%m%d","timeZone":"Europe/Berlin","capture":"onChange"}"#)
    #expect(try read(named, options()) == ["s": [1_767_859_512_000]])
    let masked = try batch(
      ["1.png", "2.png"],
      json:
        #"{"version":1,"start":1767859512000,"intervalMs":500,"frames":[{"file":"2.png","masks":[{"x":0,"y":0,"width":1,"height":1}]}]}"#
    )
    #expect(try read(masked, options()) == ["s": [1_767_859_512_500]])
    for bad in [
      #""fps":2"#, #""start":"soon","fps":1"#, #""nameTime":"%Y""#, #""times":"ctime""#, #""timeZone":"Nowhere""#,
    ] {
      let path = try batch(["1.png"], json: "{\"version\":1,\(bad)}")
      #expect(throws: BadBatch.self, "\(bad)") { try read(path, options()) }
    }
  }

  @Test func optionsFillMissingFieldsAndTheBatchOverridesThem() throws {
    var options = try options(intervalMs: 2_000)
    options.capture = .onChange
    options.isFinal = true
    let plain = try BatchSessions(reading: batch(["1767859512340.jpg"]), options: options).readers[0].batch
    #expect(plain.intervalMs == 2_000 && plain.capture == .onChange && plain.isFinal)
    let json = #"{"version":1,"session":"own","intervalMs":500,"capture":"interval","final":false}"#
    let native = try BatchSessions(reading: batch(["1767859512340.jpg"], json: json), options: options).readers[0].batch
    #expect(native.session.description == "own" && native.intervalMs == 500)
    #expect(native.capture == .interval && !native.isFinal)
  }
}
