import Foundation
import TestSupport
import Testing

@testable import FrameBatches

/// The names of known recorders: each form in three zones, also when clocks change.
@Suite struct KnownNamesTests: FrameTimesSuite {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// A local time: year, month, day, hour, minute, second.
  private typealias Local = (Int, Int, Int, Int, Int, Int)

  /// Local times and their instants in unix seconds; nil where clocks skipped the time, or showed it twice.
  private static let instants: [(zone: String, times: [(Local, Int64?)])] = [
    (
      "Europe/Berlin",
      [
        ((2026, 1, 8, 0, 5, 12), 1_767_827_112), ((2026, 1, 8, 9, 5, 12), 1_767_859_512),
        ((2026, 1, 8, 12, 5, 12), 1_767_870_312), ((2026, 1, 8, 21, 5, 12), 1_767_902_712),
        ((2026, 3, 29, 1, 59, 59), 1_774_745_999), ((2026, 3, 29, 2, 30, 0), nil),
        ((2026, 3, 29, 3, 0, 0), 1_774_746_000),
        ((2026, 10, 25, 1, 59, 59), 1_792_886_399), ((2026, 10, 25, 2, 30, 0), nil),
        ((2026, 10, 25, 3, 0, 0), 1_792_893_600),
      ]
    ),
    (
      "America/Chicago",
      [
        ((2026, 1, 8, 9, 5, 12), 1_767_884_712), ((2026, 1, 8, 21, 5, 12), 1_767_927_912),
        ((2026, 3, 8, 1, 59, 59), 1_772_956_799), ((2026, 3, 8, 2, 0, 0), nil), ((2026, 3, 8, 3, 0, 0), 1_772_956_800),
        ((2026, 11, 1, 0, 59, 59), 1_793_512_799), ((2026, 11, 1, 1, 0, 0), nil),
        ((2026, 11, 1, 2, 0, 0), 1_793_520_000),
      ]
    ),
    (
      "Australia/Sydney",
      [
        ((2026, 1, 8, 9, 5, 12), 1_767_823_512),
        ((2026, 4, 5, 1, 59, 59), 1_775_314_799), ((2026, 4, 5, 2, 59, 59), nil),
        ((2026, 4, 5, 3, 0, 0), 1_775_322_000),
        ((2026, 10, 4, 1, 59, 59), 1_791_043_199), ((2026, 10, 4, 2, 0, 0), nil),
        ((2026, 10, 4, 3, 0, 0), 1_791_043_200),
      ]
    ),
  ]

  /// Names, with fields in braces. `h` and `i` are hours without a leading zero.
  private static let forms = [
    "Screenshot {Y}-{m}-{d} at {i}.{M}.{S}\u{202F}{P}.png", "Screenshot {Y}-{m}-{d} at {i}.{M}.{S} {p}.png",
    "Screen Shot {Y}-{m}-{d} at {i}.{M}.{S} {P}.png", "Screenshot {Y}-{m}-{d} at {H}.{M}.{S}.png",
    "Bildschirmfoto {Y}-{m}-{d} um {H}.{M}.{S}.png", "Capture d’écran {Y}-{m}-{d} à {h}.{M}.{S}.png",
    "Captura de pantalla {Y}-{m}-{d} a la(s) {i}.{M}.{S}\u{A0}{e}.png",
    "スクリーンショット {Y}-{m}-{d} {h}.{M}.{S}.png", "スクリーンショット {Y}-{m}-{d} {j}{i}.{M}.{S}.png",
    "スクリーンショット {Y}-{m}-{d} {j} {i}.{M}.{S}.png", "截屏 {Y}-{m}-{d} {c}{i}.{M}.{S}.png",
    "스크린샷 {Y}-{m}-{d} {k} {i}.{M}.{S}.png", "Screenshot {Y}-{m}-{d} at {i}.{M}.{S}\u{202F}{P} (2).png",
    "Screenshot {Y}-{m}-{d} {H}{M}{S}.png", "Screenshot {Y}-{m}-{d} {H}{M}{S} (1).png",
    "Screenshot from {Y}-{m}-{d} {H}-{M}-{S}.png", "Bildschirmfoto vom {Y}-{m}-{d} {H}-{M}-{S}.png",
    "Screenshot_{Y}{m}{d}-{H}{M}{S}.png", "Screenshot_{Y}{m}{d}-{H}{M}{S}_Chrome.jpg",
    "Screenshot_{Y}{m}{d}_{H}{M}{S}.png", "Screenshot_{Y}{m}{d}_{H}{M}{S}_One UI Home.jpg",
    "Screenshot_{Y}-{m}-{d}-{H}-{M}-{S}-000_com.android.chrome.jpg", "Screenshot_{Y}-{m}-{d}-{H}-{M}-{S}.png",
    "{Y}-{m}-{d}_{H}-{M}-{S}.png", "chrome_{Y}-{m}-{d}_{H}-{M}-{S}.png",
    "image-{Y}{m}{d}{H}{M}{S}.jpg",
    "{Y}-{m}-{d}/{H}-{M}-{S}.jpg", "Camera1/{Y}-{m}-{d}/{H}-{M}-{S}.jpg",
    "{Y}-{m}-{d}/001/jpg/{H}/{M}/{S}[M][0@0][0].jpg", "{Y}Y{m}M{d}D{H}H/{M}M{S}S.jpg",
    "screenshot-{Y}{m}{d}-{H}{M}{S}-of-DP-1.webp", "01-{Y}{m}{d}{H}{M}{S}-00.jpg", "step_1_{Y}{m}{d}@{H}{M}{S}.png",
    "{Y}-{m}-{d}T{H}-{M}-{S}.png",
  ]

  private static func name(_ form: String, _ time: Local) -> String {
    func two(_ number: Int) -> String { (number < 10 ? "0" : "") + "\(number)" }
    let hour = time.3 % 12 == 0 ? 12 : time.3 % 12
    let isMorning = time.3 < 12
    return [
      "Y": "\(time.0)", "m": two(time.1), "d": two(time.2), "H": two(time.3), "h": "\(time.3)", "i": "\(hour)",
      "M": two(time.4), "S": two(time.5), "P": isMorning ? "AM" : "PM", "p": isMorning ? "am" : "pm",
      "e": isMorning ? "a.\u{A0}m." : "p.\u{A0}m.", "j": isMorning ? "午前" : "午後", "c": isMorning ? "上午" : "下午",
      "k": isMorning ? "오전" : "오후",
    ].reduce(form) { $0.replacing("{\($1.key)}", with: $1.value) }
  }

  @Test(arguments: forms) func localTimeOfAFormIsReadInEachZone(form: String) throws {
    for (zone, times) in Self.instants {
      for (time, seconds) in times {
        let name = Self.name(form, time)
        let path = try batch([name])
        let error = #expect(throws: BadBatch.self, "\(name)") { try read(path, options()) }
        #expect(error?.advice.contains("--time-zone") == true, "\(name): no zone is guessed")
        guard let seconds else {
          let error = #expect(throws: BadBatch.self, "\(name)") { try read(path, options(timeZone: zone)) }
          #expect(error?.cause.contains("clocks in \(zone)") == true, "\(name): \(error?.cause ?? "")")
          continue
        }
        #expect(try read(path, options(timeZone: zone)).values.map { $0 } == [[1_000 * seconds]], "\(name) in \(zone)")
      }
    }
  }

  /// A row whose pattern is none would be silently left out.
  @Test func eachRowHasItsPatterns() {
    #expect(NamedTimesFormat.Naming.known.allSatisfy { !$0.patterns.isEmpty })
    let counts = NamedTimesFormat.Naming.known.map(\.patterns.count)
    #expect(counts == [1, 1, 1, 1, 1, 1, 1, 2, 16, 1, 4, 1, 1, 4, 1, 1, 1, 1, 1])
  }

  @Test func batchThatIsTheFolderOfADayTellsTheDate() throws {
    let path = try scratch.directory("2026-01-08")
    for name in ["09-05-12.jpg", "09-05-13.jpg"] {
      try scratch.file("2026-01-08/" + name, Fixture("single-frame").bytes("1767859512340.jpg"))
    }
    #expect(try read(path, options(timeZone: "Europe/Berlin")) == ["s": [1_767_859_512_000, 1_767_859_513_000]])
  }

  @Test func microsecondsAndNanosecondsAreRounded() throws {
    let names = [
      ["1403636579763555584.png", "1403636580763679040.png"], ["1403636579763555.png", "1403636580763678.png"],
    ]
    for names in names { #expect(try read(batch(names), options()) == ["s": [1_403_636_579_764, 1_403_636_580_764]]) }
    #expect(try read(batch(["f_1403636579763555584.png"]), options("f_%Q")) == ["s": [1_403_636_579_764]])
    // Numbers with leading zeros are numbers of frames.
    #expect(throws: BadBatch.self) { try read(batch(["0000000000000001.png"]), options()) }
  }

  /// AM and PM are read, although other names of macOS have hours of the day.
  @Test(arguments: forms) func knownNamesNeedNoWarning(form: String) throws {
    let names = [(2026, 1, 8, 9, 5, 12), (2026, 1, 8, 21, 5, 13)].map { Self.name(form, $0) }
    let found = try BatchSessions(reading: batch(names), options: options(timeZone: "Europe/Berlin"))
    #expect(found.readers[0].batch.warnings == [], "\(names)")
  }

  @Test func secondScreenshotOfASecondComesBehindTheFirst() throws {
    let names = ["Screenshot 2026-01-08 at 9.05.12 AM.png", "Screenshot 2026-01-08 at 9.05.12 AM (2).png"]
    let found = try BatchSessions(reading: batch(names), options: options(timeZone: "Europe/Berlin"))
    let frames = found.readers[0].batch.frames
    #expect(frames.map(\.timeMs) == [1_767_859_512_000, 1_767_859_512_500])
    #expect(frames.map(\.source) == names)
  }

  /// Names that nobody has written: no trap, no guess of a zone.
  @Test func randomNamesNeverTrapAndNeverTellLocalTimeWithoutAZone() throws {
    var random = Random(seed: 44)
    let parts = [
      "2026", "01", "1", "08", "12", "AM", "pm", "p. m.", "午後", " ", "\u{202F}", "-", "_", ".", "T", "Z", "+01:00", "/",
      "(2)", "Screenshot", "image", "1767859512340", "1403636579763555584", "[", "]", "%", "é", "\u{0}", "jpg", "99",
    ]
    for _ in 0..<10_000 {
      let name = (0..<Int.random(in: 0..<14, using: &random)).map { _ in
        parts[Int.random(in: parts.indices, using: &random)]
      }.joined()
      for naming in NamedTimesFormat.Naming.known {
        guard let (pattern, match) = naming.match(name, in: "batch") else { continue }
        #expect(!pattern.needsZone || NamedTime(match, zone: nil) == nil, "\(name.debugDescription)")
        _ = NamedTime(match, zone: ZoneRules(offset: "+01:00"))
      }
      _ = PatternGuess(of: name, limits: Limits())?.patterns.map { $0.match(name) }
    }
  }
}
