import Foundation
import TestSupport
import Testing

@testable import FileSystem
@testable import FrameBatches

/// The advice for names without a known time: the options that it gives read the batch's own names.
@Suite struct NameAdviceTests {
  private let scratch: ScratchDirectory
  private static var jpeg: [UInt8] { get throws { try Fixture("single-frame").bytes("1767859512340.jpg") } }

  init() throws { scratch = try ScratchDirectory() }

  private func batch(_ names: [String]) throws -> String {
    let path = try scratch.directory("batch-\(UUID().uuidString)")
    for name in names {
      let file = URL(fileURLWithPath: path + "/" + name)
      try FileManager.default.createDirectory(
        at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
      try Data(Self.jpeg).write(to: file)
    }
    return path
  }

  private func refusal(_ path: String) throws -> BadBatch {
    try #require(
      #expect(throws: BadBatch.self) { try BatchSessions(reading: path, options: InputOptions(session: "s")) })
  }

  /// Names, the advised pattern, and the instants that it reads.
  @Test(
    arguments: [
      (
        ["Shot 2026-01-08 at 08:05:12.png", "Shot 2026-01-08 at 08:05:13.png"], "Shot %Y-%m-%d at %H:%M:%S", [0, 1_000]
      ),
      (["photo-20260108080512.jpg", "photo-20260108080513.jpg"], "photo-%Y%m%d%H%M%S", [0, 1_000]),
      (["19700101-065047.jpg", "20260108-080512.jpg", "20260108-080513.jpg"], "%Y%m%d-%H%M%S", [0, 1_000]),
      (["cam-20260108-080512.jpg", "cam-20260108-080513_1.jpg"], "cam-%Y%m%d-%H%M%S[_%q]", [0, 1_000]),
      (["a 20260108_080512-1.jpg", "b 20260108_080512-2.jpg"], "%*%Y%m%d_%H%M%S-%q", [0, 500]),
      (["x.1767859512.00433.jpg", "x.1767859513.1.jpg"], "x.%s", [4, 1_100]),
      (["x-1767859512340.jpg", "y-1767859513340.jpg"], "%*%Q", [340, 1_340]),
      (["2026-01-08 08.05.12,25.jpg", "2026-01-08 08.05.13,5.jpg"], "%Y-%m-%d %H.%M.%S,%f", [250, 1_500]),
      (["l'ete_2026-01-08 08.05.12.jpg"], "l'ete_%Y-%m-%d %H.%M.%S", [0]),
      (["cam 2026-01-08T08-05-12_pm25.png"], "cam %Y-%m-%dT%H-%M-%S_pm25", [0]),
      (["I am_2026-01-08 08.05.12.png"], "I am_%Y-%m-%d %H.%M.%S", [0]),
      (["cam[1]_2026-01-08_08.05.12.png"], "cam%[1%]_%Y-%m-%d_%H.%M.%S", [0]),
      // Digits behind the second are its fraction, and no text.
      (["PXL_20260108_080512340.jpg", "PXL_20260108_080513340.jpg"], "PXL_%Y%m%d_%H%M%S%L", [340, 1_340]),
      (["x_1767859512340000.png", "x_1767859513340000.png"], "x_%Q", [340, 1_340]),
      (["shot_2026-01-08 8.05.12.png", "shot_2026-01-08 12.05.12.png"], "shot_%Y-%m-%d %-H.%M.%S", [0, 14_400_000]),
      // A 12-hour clock, with a narrow space that nobody can type.
      (
        ["shot_2026-01-08 8.05.12\u{202F}AM.png", "shot_2026-01-08 12.05.12\u{202F}PM.png"],
        "shot_%Y-%m-%d %-I.%M.%S %p", [0, 14_400_000]
      ),
      (["shot_20260108 080512p.m..png"], "shot_%Y%m%d %I%M%S%p", [43_200_000]),
      // The date is in the folders.
      (["2026-01-08/cam_08_05_12.jpg", "2026-01-08/cam_08_05_13.jpg"], "%Y-%m-%d/cam_%H_%M_%S", [0, 1_000]),
      (["a/2026/01/08/080512-x.jpg", "a/2026/01/08/080513-x.jpg"], "%Y/%m/%d/%H%M%S-x", [0, 1_000]),
      (["20260108/part1/c1 08.05.12.jpg", "20260108/part2/c2 08.05.13.jpg"], "%Y%m%d/%*/%*%H.%M.%S", [0, 1_000]),
      (["写真_2026-01-08 午後8.05.12.png"], "写真_%Y-%m-%d %p%-I.%M.%S", [43_200_000]),
      // The zone in a name counts, and not one that is named to the program.
      (["shot 2026-01-08T00-05-12-0800.jpg"], "shot %Y-%m-%dT%H-%M-%S%z", [0]),
      (["2026-01-08T09-05-12.250+01:00 a.jpg"], "%Y-%m-%dT%H-%M-%S.%f%z a", [250]),
      (["2026-01-08T08-05-12Z shot.jpg"], "%Y-%m-%dT%H-%M-%S%z shot", [0]),
      (["2026-01-08 08.05.12-0001.jpg", "2026-01-08 08.05.12-0002.jpg"], "%Y-%m-%d %H.%M.%S-%q", [0, 500]),
      // Rare forms: names of months, two digits of the year, days of the year, ticks, no seconds.
      (["08-Jan-2026_08-05-12.png", "08-Jan-2026_08-05-13.png"], "%d-%b-%Y_%H-%M-%S", [0, 1_000]),
      (["shot january 8 2026 8.05.12 AM.png"], "shot %b %-d %Y %-I.%M.%S %p", [0]),
      (["plot3_2026008_080512.jpg", "plot3_2026008_080513.jpg"], "plot3_%Y%j_%H%M%S", [0, 1_000]),
      (["cap_639034563120000000.png", "cap_639034563125000000.png"], "cap_%Q", [0, 500]),
      (["cam 2026-01-08 08.05.png", "cam 2026-01-08 08.06.png"], "cam %Y-%m-%d %H.%M", [-12_000, 48_000]),
      (["2026-01-08_0805.png", "2026-01-09_0805.png"], "%Y-%m-%d_%H%M", [-12_000, 86_388_000]),
      // Only one order makes a date of all names.
      (["08.01.2026_08.05.12.png", "13.01.2026_08.05.12.png"], "%d.%m.%Y_%H.%M.%S", [0, 432_000_000]),
    ] as [([String], String, [Int64])])
  func advisedPatternReadsTheNames(names: [String], pattern: String, offsetsMs: [Int64]) throws {
    let path = try batch(names)
    let refusal = try refusal(path)
    let quoted = pattern.replacingOccurrences(of: "'", with: "'\\''")
    #expect(refusal.advice.contains("--name-time '\(quoted)'"), "\(refusal.advice)")
    var options = InputOptions(session: "s")
    try options.setTimes(nameTime: pattern, times: nil, start: nil, fps: nil, timeZone: "UTC")
    let batch = try BatchSessions(reading: path, options: options).readers[0].batch
    #expect(batch.frames.map { $0.timeMs - 1_767_859_512_000 } == offsetsMs)
  }

  @Test func dateOfTwoOrdersIsNotGuessed() throws {
    let advice = try refusal(batch(["08.01.2026_08.05.12.png", "08.01.2026_08.05.13.png"])).advice
    #expect(
      advice.hasPrefix(
        "if the numbers are a date, say in which order: --name-time '%d.%m.%Y_%H.%M.%S', or --name-time "
          + "'%m.%d.%Y_%H.%M.%S', with --time-zone"), "\(advice)")
    let short = try refusal(batch(["260108_080512.png", "260108_080513.png"])).advice
    #expect(short.contains("'%y%m%d_%H%M%S', or --name-time '%d%m%y_%H%M%S'"), "\(short)")
    #expect(short.contains("; else for numbered pictures give --start T --fps R"))
  }

  /// A counter behind a date tells no hours.
  @Test(arguments: ["2026-01-08_00", "20260108_00", "2026-01-08_10"]) func counterIsNoTimeOfDay(prefix: String) throws {
    let advice = try refusal(batch((1...40).map { prefix + ($0 < 10 ? "0" : "") + "\($0).png" })).advice
    #expect(!advice.contains("%H"), "\(advice)")
  }

  @Test func numberedPicturesOfSeveralSourcesAreAdvisedApart() throws {
    let path = try batch((0..<4).flatMap { ["left000\($0).png", "right000\($0).png"] })
    let advice = try refusal(path).advice
    #expect(
      advice.contains("give --start T --fps R")
        && advice.contains("\(path.shellWord)/left*.png, or \(path.shellWord)/right*.png"))
  }

  /// The first option that a reader finds puts the pictures of all days into one order.
  @Test func dateAndMinuteOrderNumberedPictures() throws {
    let path = try batch((0..<8).map { "2021-03-0\(5 + $0 / 4)_120\($0 % 4).jpg" })
    var options = InputOptions(session: "s")
    try options.setTimes(nameTime: nil, times: nil, start: "1767859512000", fps: "10", timeZone: nil)
    let error = try #require(#expect(throws: BadBatch.self) { try BatchSessions(reading: path, options: options) })
    #expect(error.advice.hasPrefix("say what orders all: --name-time '%Y-%m-%d_%H%M'; or give the pictures of one"))
    try options.setTimes(nameTime: "%Y-%m-%d_%H%M", times: nil, start: "1767859512000", fps: "10", timeZone: nil)
    let frames = try BatchSessions(reading: path, options: options).readers[0].batch.frames
    #expect(frames.map(\.source) == frames.map(\.source).sorted() && frames.count == 8)
  }

  @Test func universalTimeInANameIsTheAdvisedZone() throws {
    let advice = try refusal(batch(["cam 2026-01-08 08.05.12 UTC.jpg"])).advice
    #expect(advice.contains("--name-time 'cam %Y-%m-%d %H.%M.%S UTC' --time-zone UTC"), "\(advice)")
  }

  /// A pattern that does not read AM and PM would be twelve hours off.
  @Test func noPatternWithoutItsHalfOfTheDayIsAdvised() throws {
    let refusal = try refusal(batch(["shot1 pm 2026-04-15 at 12.59.58.png"]))
    #expect(!refusal.advice.contains("%H"), "\(refusal)")
  }

  @Test func noPatternIsAdvisedThatMostNamesFail() throws {
    let refusal = try refusal(
      batch(["a_2026-01-08 08.05.12.jpg"] + (1...5).map { "holiday \($0) of 2026.jpg" }))
    #expect(!refusal.advice.contains("--name-time"))
    #expect(refusal.advice.contains("--fps 1, which numbers 5 of 6"))
    // Numbered frames need a number each.
    #expect(try self.refusal(batch(["a1.jpg", "b1.jpg"])).advice.contains("--start") == false)
    #expect(try self.refusal(batch(["a1.jpg", "a2.jpg"])).advice.contains("--start T --fps R"))
  }

  @Test func otherFilesBesideThePicturesDoNotHideThem() throws {
    let path = try batch(["shot_2026-01-08 08.05.12.jpg"])
    for name in [".directory", "AAA.db", "desktop.ini"] { try scratch.file(lastComponent(of: path) + "/" + name, [1]) }
    let refusal = try refusal(path)
    #expect(refusal.cause.contains("'shot_2026-01-08 08.05.12.jpg' has a date in its name"))
  }

  @Test func foldersThatTellTheDateHaveAdviceThatReadsThem() throws {
    let dated = try batch(["2026-01-08/08h05.jpg", "2026-01-08/08h06.jpg"])
    let advice = try refusal(dated).advice
    #expect(advice.contains("encode --batches DIR --times mtime"))
    var options = InputOptions(session: "s")
    try options.setTimes(nameTime: nil, times: "mtime", start: nil, fps: nil, timeZone: nil)
    #expect(try BatchSessions(reading: dated + "/2026-01-08", options: options).readers[0].batch.frames.count == 2)
    let named = try batch(["one/shot_2026-01-08 08.05.12.jpg", "two/shot_2026-01-08 08.05.13.jpg"])
    #expect(try refusal(named).advice.contains("--name-time 'shot_%Y-%m-%d %H.%M.%S'"))
    let deep = try refusal(batch(["1/2/3/4/5/6/7/8/9/12.jpg"]))
    #expect(deep.cause.contains("folders of folders, the first in '1/2/3/4/5/6/7/8/9'"))
  }

  @Test func limitsAreNamedWithTheValueThatTheBatchNeeds() throws {
    let path = try batch((0..<4).map { "\(1_767_859_512_000 + $0 * 1_000).jpg" })
    var limits = Limits()
    limits.frames = 3
    let error = #expect(throws: BadBatch.self) { try BatchSessions(reading: path, limits: limits) }
    #expect(error?.cause == "4 frames, more than the limit of 3")
    #expect(error?.advice == "raise the limit with --limit frames=4, or send it with enqueue, which splits it")
    limits.frames = 4
    #expect(try BatchSessions(reading: path, limits: limits).readers[0].batch.frames.count == 4)
  }

  /// Names in ASCII are looked at byte by byte.
  @Test func halfDaysOfBytesAreThoseOfCharacters() {
    let parts = ["1", "12", "a", "A", "p", "P", "m", "M", ".", " ", "_", "-", "x", "shot", "\t", "am", "p.m.", "/"]
    var random = Random(seed: 9)
    var found = 0
    for _ in 0..<20_000 {
      let stem = (0...Int(random.int(0...8))).map { _ in parts[Int(random.int(0...Int64(parts.count - 1)))] }.joined()
      let isHalfDay = NameAdvice.isHalfDay(ofAny: stem.lowercased())
      #expect(NameAdvice.isHalfDay(ofASCII: stem[...]) == isHalfDay, "\(stem)")
      if isHalfDay { found += 1 }
    }
    #expect(found > 100)
  }

  @Test func suffixesOfBytesAreThoseOfCharacters() {
    for (name, stem, suffix) in [
      ("a.jpg", "a", "jpg"), ("a.JPEG", "a", "jpeg"), ("a.b.c1", "a.b", "c1"), ("a.5", "a.5", ""), ("a", "a", ""),
      ("a.", "a.", ""), ("a.toolong", "a.toolong", ""), (".jpg", "", "jpg"), ("a.j g", "a.j g", ""),
      ("a.jpé", "a", "jpé"),
      ("é.png", "é", "png"), ("a.\u{301}jpg", "a.\u{301}jpg", ""), ("d.x/a.png", "a", "png"),
    ] {
      let parts = PictureNames.parts(of: name)
      #expect(parts.stem == stem && parts.suffix == suffix, "\(name)")
    }
  }
}
