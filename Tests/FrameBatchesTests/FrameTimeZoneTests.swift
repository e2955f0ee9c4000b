import Foundation
import TestSupport
import Testing

@testable import FrameBatches
@testable import JSON

/// Local times in names of frames: hours that clocks skip or repeat, and the rules of time zones.
@Suite struct FrameTimeZoneTests: FrameTimesSuite {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// Clocks in Berlin went from 02:00 to 03:00 on 29 March 2026, and from 03:00 back to 02:00 on 25 October.
  @Test func skippedLocalHourIsRefused() throws {
    let path = try batch(["20260329T015959.png", "20260329T023000.png", "20260329T030000.png"])
    let found = try BatchSessions(reading: path, options: options(timeZone: "Europe/Berlin")).readers[0].batch
    #expect(found.frames.map(\.timeMs) == [1_774_745_999_000, 1_774_746_000_000])
    #expect(found.refused.map(\.reason) == ["clocks in Europe/Berlin skipped its time"])
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
        "clocks in America/Chicago showed its time twice, and no sequence tells which it is; "
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

  /// A quarter of the names are symbolic links.
  @Test func everyZoneNameOfTheSystemIsKnown() throws {
    let program = "import sys, zoneinfo; print('\\n'.join(sorted(zoneinfo.available_timezones())))"
    let names = String(decoding: try Tool.output(Tool.python, ["-c", program]), as: UTF8.self)
      .split(separator: "\n").map(String.init)
    #expect(names.count > 300)
    for name in names { #expect(try ZoneRules(named: name) != nil, "\(name)") }
    for (name, instant) in [("Asia/Calcutta", 1_767_843_312_000), ("US/Eastern", 1_767_881_112_000)]
    where names.contains(name) {
      #expect(try read(batch(["20260108T090512.png"]), options(timeZone: name)) == ["s": [Int64(instant)]])
    }
  }

  @Test(arguments: [
    "Europe/Nowhere", "../etc/passwd", "/etc/passwd", "Europe", "", "+25:00", "Europe/../UTC", "posixrules\u{0}",
    // Their seconds are not those of unix times.
    "right/Europe/Berlin", "tzdata.zi",
  ])
  func zonesThatDoNotExistAreRefused(_ name: String) {
    #expect(throws: InvalidOption.self) { try options(timeZone: name) }
  }
}
