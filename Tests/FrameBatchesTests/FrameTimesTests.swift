import Foundation
import TestSupport
import Testing

@testable import FrameBatches

/// Batches whose times come from file names, frame numbers or modification times.
@Suite struct FrameTimesTests: FrameTimesSuite {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

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
      ("%Y-%m-%d/%H-%M-%S", "2026-01-08/08-05-12.jpg", 1_767_859_512_000),
      ("%Y/%-m/%-d/%H%M/%S", "cam/2026/1/8/0805/12.jpg", 1_767_859_512_000),
      ("%*/%g_%s", "any/s_1767859512.jpg", 1_767_859_512_000),
      ("%Y-%m-%d %-I.%M.%S %p", "2026-01-08 8.05.12\u{202F}am.png", 1_767_859_512_000),
      ("%Y-%m-%d %I.%M.%S%p", "2026-01-08 08.05.12AM.png", 1_767_859_512_000),
      ("%Y-%m-%d %H.%M.%S[ (%q)]", "2026-01-08 08.05.12.png", 1_767_859_512_000),
      ("%Y-%m-%d %H.%M.%S[ (%q)]", "2026-01-08\u{3000}08.05.12 (3).png", 1_767_859_512_000),
      ("%[%s%]", "[1767859512].jpg", 1_767_859_512_000),
      ("%d-%b-%Y_%H-%M-%S", "08-Jan-2026_08-05-12.png", 1_767_859_512_000),
      ("%B %-d, %Y %H.%M.%S", "JANUARY 8, 2026 08.05.12.png", 1_767_859_512_000),
      ("%d%b%y %H%M%S", "08JAN26 080512.png", 1_767_859_512_000),
      ("plot3_%Y%j_%H%M%S", "plot3_2026008_080512.jpg", 1_767_859_512_000),
      ("%y%m%d_%H%M%S", "260108_080512.jpg", 1_767_859_512_000),
      ("%Y-%m-%d_%H%M", "2026-01-08_0805.jpg", 1_767_859_500_000),
      // Ticks of .NET.
      ("%Q", "639034563123400000.png", 1_767_859_512_340),
      // Digits beside a number belong to it.
      ("%*%Y%m%d%*%H%M%S", "cam7_20260108_080512.jpg", 1_767_859_512_000),
    ])
  func aPatternReadsNames(_ pattern: String, _ name: String, _ instant: Int64) throws {
    #expect(try read(batch([name]), options(pattern, timeZone: "UTC")) == ["s": [instant]])
  }

  @Test(
    arguments: [
      "", "%Y", "%H%M%S", "%s%Q", "%Y%m%d%H%M%S%s", "%k", "%", "%s%s", "%Y%m%d%H%M%S%L%f", "%s%z", "text",
      // A 12-hour clock needs its half of the day, and only it.
      "%Y%m%d%I%M%S", "%Y%m%d%H%M%S%p", "%Y%m%d%H%I%M%S%p",
      // A year, a month or a day in two ways.
      "%Y%y%m%d%H%M%S", "%Y%m%b%d%H%M%S", "%Y%j%d%H%M%S", "%-y%m%d%H%M%S", "%Y%m%d%H%M%L",
      // 111 could be January 11th, or November 1st.
      "%Y-%-m%-d %H%M%S", "%s%q",
      // An optional part is not in all names.
      "[%Y]%m%d%H%M%S", "%s[", "%s]", "[[%q]]%s", "%-Y%m%d%H%M%S",
    ])
  func aPatternWithoutExactlyOneTimeIsRefused(_ pattern: String) {
    #expect(throws: InvalidOption.self) { try options(pattern) }
  }

  @Test(
    arguments: [
      ("%H-%M-%S", "'%H-%M-%S' lacks the date, %Y %m %d; folders may tell it"), ("%Y%m%d", "'%Y%m%d' lacks %H %M;"),
      ("%Y%b%d%H", "'%Y%b%d%H' lacks %M;"), ("%k", "'%k' is no pattern of one capture time;"),
    ])
  func refusedPatternTellsWhatIsMissing(_ pattern: String, _ cause: String) {
    let error = #expect(throws: InvalidOption.self) { try options(pattern) }
    #expect(error?.cause.hasPrefix(cause) == true, "\(error?.cause ?? "")")
  }

  @Test func daysOfAYearThatDoNotExistAreRefused() throws {
    let path = try batch(["2024366-080512.jpg", "2026366-080512.jpg", "2026000-080512.jpg"])
    let frames = try BatchSessions(reading: path, options: options("%Y%j-%H%M%S", timeZone: "UTC")).readers[0].batch
    #expect(frames.frames.map(\.timeMs) == [1_735_632_312_000] && frames.refused.count == 2)
  }

  @Test func framesOfOneMinuteAreSpreadOverIt() throws {
    let path = try batch(["2026-01-08_0805 1.jpg", "2026-01-08_0805 2.jpg", "2026-01-08_0805 3.jpg"])
    #expect(
      try read(path, options("%Y-%m-%d_%H%M %q", timeZone: "UTC"))
        == ["s": [1_767_859_500_000, 1_767_859_520_000, 1_767_859_540_000]])
  }

  @Test func namesOfTicksAreRefusedWithThePatternThatReadsThem() throws {
    let path = try batch(["639034563123400000.png", "639034563133400000.png"])
    let error = #expect(throws: BadBatch.self) { try read(path, options()) }
    #expect(error?.advice.hasSuffix("or read the names with --name-time %Q") == true, "\(error?.advice ?? "")")
    #expect(try read(path, options("%Q")) == ["s": [1_767_859_512_340, 1_767_859_513_340]])
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

  @Test func halfDayClockUnderAPatternOfHoursIsAWarning() throws {
    let path = try batch(["shot 2026-01-08 08.05.12 AM.png", "shot 2026-01-08 08.05.13 PM.png"])
    let found = try BatchSessions(reading: path, options: options("shot %Y-%m-%d %H.%M.%S %*", timeZone: "UTC"))
    #expect(found.readers[0].batch.warnings.map { $0.hasPrefix("2 of 2 names have AM or PM") } == [true])
  }

  /// Read as text, the digits would be lost: the time would be another one.
  @Test(
    arguments: [
      ("%*%Y%m%d-%H%M%S", "cam120260108-080512.jpg"), ("%Y%m%d-%H%M%S%*", "20260108-080512340.jpg"),
      ("%g%s", "cam121767859512.jpg"), ("%Y-%m-%d %-H%*.%M.%S", "2026-01-08 123.05.12.jpg"),
      ("%Y-%m-%d/%H-%M-%S", "08-05-12.jpg"), ("%Y-%m-%d/%*%H-%M-%S", "2026-01-08/a/08-05-12.jpg"),
      ("%*%Q", "176785951234000000.jpg"),
    ])
  func noDigitOfANumberIsText(_ pattern: String, _ name: String) throws {
    let error = #expect(throws: BadBatch.self) { try read(batch([name]), options(pattern, timeZone: "UTC")) }
    #expect(error?.cause.contains("the name is not \(pattern)") == true, "\(error?.cause ?? "")")
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

  @Test func counterOfACameraThatRollsOverGoesOn() throws {
    let names = ["DSC_9998.JPG", "DSC_9999.JPG", "DSC_0001.JPG", "DSC_0003.JPG"]
    let found = try BatchSessions(reading: batch(names), options: options(start: "1767859512340", fps: "1"))
    let rolled = found.readers[0].batch
    #expect(rolled.frames.map(\.source) == names)
    #expect(rolled.frames.map { $0.timeMs - 1_767_859_512_340 } == [0, 1_000, 2_000, 4_000])
    #expect(rolled.warnings.contains { $0.contains("DSC_0001.JPG comes after DSC_9999.JPG") }, "\(rolled.warnings)")
    // Without neighbours on both sides, a missing number is a longer hold.
    for names in [
      ["a0001.jpg", "a9000.jpg"], ["a5000.jpg", "a9999.jpg", "a0001.jpg", "a4999.jpg"], ["a9.jpg", "a1.jpg"],
    ] {
      let plain = try BatchSessions(reading: batch(names), options: options(start: "1767859512340", fps: "1000"))
      #expect(plain.readers[0].batch.frames.map(\.source) == names.sorted())
    }
    // Files in the order of their times: the clock did not step back.
    let path = try batch(names)
    for (index, name) in names.enumerated() {
      try FileManager.default.setAttributes(
        [.modificationDate: Date(timeIntervalSince1970: 1_767_859_512 + Double(index))],
        ofItemAtPath: path + "/" + name)
    }
    let timed = try BatchSessions(reading: path, options: options(times: "mtime")).readers[0].batch
    #expect(timed.frames.map(\.source) == names && timed.frames.allSatisfy { $0.note == nil } && timed.warnings == [])
  }

  @Test func numbersThatCannotBeInstantsAreRefused() throws {
    let path = try batch(["1.png", "9223372036854775807.png", "99999999999999999999.png", "2.png"])
    let found = try BatchSessions(reading: path, options: options(start: "1767859512340", fps: "1")).readers[0].batch
    #expect(found.frames.map(\.source) == ["1.png", "2.png"])
    #expect(found.refused.count == 2)
    // 1.png and 01.png have one number.
    let equal = try batch(["1.png", "01.png"])
    #expect(throws: BadBatch.self) {
      try BatchSessions(reading: equal, options: options(start: "1767859512340", fps: "1"))
    }
  }

  @Test(
    arguments: [
      ("0", nil), ("1001", nil), ("x", nil), ("1.0000000001", nil), ("", nil), ("-1", nil), (nil, 0), (nil, nil),
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

  /// Makes files with modification times, in milliseconds from 2026-01-08T08:05:12Z.
  private func files(_ offsets: [(name: String, ms: Int)]) throws -> String {
    let path = try batch(offsets.map(\.name))
    for (name, ms) in offsets {
      try FileManager.default.setAttributes(
        [.modificationDate: Date(timeIntervalSince1970: 1_767_859_512 + Double(ms) / 1_000)],
        ofItemAtPath: path + "/" + name)
    }
    return path
  }

  private func modified(_ offsets: [(name: String, ms: Int)]) throws -> Batch {
    try BatchSessions(reading: files(offsets), options: options(times: "mtime")).readers[0].batch
  }

  /// Copies and some file systems keep whole seconds.
  @Test func filesOfOneModificationTimeAreSpreadInTheOrderOfTheirNames() throws {
    let whole = try modified((1...12).map { ("p\($0).png", ($0 - 1) / 3 * 1_000) })
    #expect(whole.frames.map(\.source) == (1...12).map { "p\($0).png" })
    #expect(whole.frames.prefix(4).map { $0.timeMs - 1_767_859_512_000 } == [0, 333, 666, 1_000])
    #expect(whole.frames[1].note == "file 2 of 3 of one modification time, which were spread by their names")
    #expect(whole.warnings.map { $0.hasPrefix("12 of 12 files share their modification time") } == [true])
    // FAT keeps even seconds.
    let even = try modified((1...8).map { ("x \($0) b\($0 % 2).png", ($0 - 1) / 2 * 2_000) })
    #expect(even.frames.map { $0.timeMs - 1_767_859_512_000 } == (0..<8).map { $0 * 1_000 })
    // Only some seconds are equal. No file reaches the next time.
    let some = try modified([("a.png", 0), ("b.png", 0), ("c.png", 300), ("d.png", 7_001), ("e.png", 7_001)])
    #expect(some.frames.map { $0.timeMs - 1_767_859_512_000 } == [0, 150, 300, 7_001, 7_002])
    // A picture and its raw file are of one instant.
    let pairs = try modified([("1.png", 0), ("1.raw", 0), ("2.png", 0), ("3.png", 9_000)])
    #expect(pairs.frames.map { $0.timeMs - 1_767_859_512_000 } == [0, 0, 500, 9_000])
  }

  /// Unpacking and cloning leave one time.
  @Test func filesThatNearlyAllHaveOneModificationTimeAreRefused() throws {
    let numbered = try files((0..<30).map { ("layer\($0).png", $0 == 3 ? 9_000 : 0) })
    let error = #expect(throws: BadBatch.self) { try read(numbered, options(times: "mtime")) }
    #expect(error?.cause.hasPrefix("29 of 30 files have one modification time, on 2026-01-08") == true)
    #expect(error?.advice.contains("--fps 1") == true)
    #expect(try read(numbered, options(start: "1767859512000", fps: "10"))["s"]?.count == 30)
    let dated = try files((0..<10).map { ("cam 20260108_08051\($0).png", 0) })
    #expect(
      #expect(throws: BadBatch.self) { try read(dated, options(times: "mtime")) }?.advice
        == "read the names with --name-time 'cam %Y%m%d_%H%M%S'")
  }

  @Test func modificationTimesOfACopyAreAWarning() throws {
    let copied = try modified((0..<30).map { ("layer\($0).png", 3 * $0 + 1) })
    #expect(copied.frames.count == 30)
    #expect(copied.warnings.map { $0.hasPrefix("30 of 30 files were modified less than 20 ms after each") } == [true])
    #expect(try modified((0..<30).map { ("layer\($0).png", 40 * $0 + 1) }).warnings == [])
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
