import Foundation
import TestSupport
import Testing

@testable import FrameBatches

/// A form is recognised by most names. A name of another form is refused alone.
@Suite struct StrayNameTests: FrameTimesSuite {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private static let strays = [
    "01-20260108080512-00.jpg", "1.0.png", "808433369.1229999.png", "preview_cam-1767859512.5.webp",
    "Screenshot 2026-01-08 at 9.05.12 AM.png", "frame_0001.png", "1767859512340_1_1767859513340.jpeg",
    "1767859512.25.png",
    "2026-01-08T08-05-12Z.png", "step_1_20260108@090512.png", "image-20260108233512.jpg", "1767859512_1.webp",
  ]

  @Test(arguments: strays, [3, 100]) func strayAmongPlainNamesIsRefusedAlone(stray: String, count: Int) throws {
    let names = (0..<count).map { "\(1_767_859_512_000 + 1_000 * $0).jpg" }
    let found = try BatchSessions(reading: batch(names + [stray]), options: options(timeZone: "UTC")).readers[0].batch
    #expect(found.frames.map(\.source) == names.sorted())
    #expect(found.refused.map(\.source) == [stray])
  }

  @Test(arguments: strays) func strayAmongPicturesWithoutTimesDecidesNothing(stray: String) throws {
    let names = (1...9).map { "picture \($0).png" }
    let path = try batch(names + [stray])
    let error = #expect(throws: BadBatch.self) { try read(path, options(timeZone: "UTC")) }
    #expect(
      error?.advice.contains("--fps") == true || error?.advice.contains("--name-time") == true, "\(error?.advice ?? "")"
    )
    // The option of the user reads them.
    #expect(try read(path, options(start: "1767859512000", fps: "1"))["s"]?.count == 9)
  }

  @Test func namesOfPythonAreUnixSecondsAndNotThoseOfSentry() throws {
    let path = try batch(["1767859512.3401234.png", "1767859513.3401234.png"])
    #expect(try read(path, options()) == ["s": [1_767_859_512_340, 1_767_859_513_340]])
    #expect(try read(path, options("%s")) == ["s": [1_767_859_512_340, 1_767_859_513_340]])
    let sentry = try batch(["808433369.1229999.png", "808433370.1229999.png"])
    #expect(try read(sentry, options()) == ["s": [1_786_740_569_123, 1_786_740_570_123]])
    // Seconds since the start of a machine are no time of day.
    #expect(throws: BadBatch.self) { try read(batch(["12.345.png", "13.345.png"]), options()) }
  }

  @Test func patternOfTheUserComesBeforeEveryRecogniser() throws {
    for names in [["990000000.5.png"], ["1767859512340_1_1767859513340.jpeg"], ["1767859512340_m1.jpg"]] {
      let stem = names[0].split(separator: ".").dropLast().joined(separator: ".")
      let pattern = stem.contains("_") ? "%Q_%*" : "%s"
      let found = try BatchSessions(reading: batch(names), options: options(pattern))
      #expect(found.readers[0].format == NamedTimesFormat.name)
    }
  }

  @Test func sourcesThatAlternateAreRefusedWithASessionForEach() throws {
    let names = (0..<6).flatMap {
      ["\(1_719_316_800_000 + 1_000 * $0)_webcam.jpg", "\(1_719_316_800_400 + 1_000 * $0)_screen.png"]
    }
    let path = try batch(names)
    let error = #expect(throws: BadBatch.self) { try read(path, options()) }
    let advice = error?.advice ?? ""
    #expect(advice.hasPrefix("--name-time '%Q_%g' makes a session of each; for a film of one"), "\(advice)")
    #expect(advice.contains("/*_screen.png") && advice.contains("/*_webcam.jpg"))
    #expect(try read(path, options("%Q_%g")).mapValues(\.count) == ["webcam": 6, "screen": 6])
    // The user's own pattern mixes them, with a warning.
    let mixed = try BatchSessions(reading: path, options: options("%Q%*")).readers[0].batch
    #expect(
      mixed.warnings.first?.hasPrefix("pictures of 2 sources alternate: 6 with '_screen', 6 with '_webcam'") == true)
    // The advice is complete: the pictures of one source, and the pattern.
    #expect(advice.contains("and not the folder, with --name-time '%Q%*': "))
    // Three cameras at the same instants.
    let three = (0..<6).flatMap { second in ["a", "b", "c"].map { "\($0)-20260108T09051\(second).png" } }
    let apart = try #require(#expect(throws: BadBatch.self) { try read(batch(three), options()) })
    #expect(apart.advice.hasPrefix("--name-time '%g-%Y%m%dT%H%M%S' and --time-zone makes a session of each"))
    // Programs that follow each other at random are no sources.
    let random = [0, 1, 2, 0, 0, 2, 1, 1, 0, 2, 2, 1].enumerated().map {
      "\(["Chrome", "Mail", "Code"][$1])_2026-01-08_09-05-\(10 + $0).png"
    }
    #expect(try read(batch(random), options(timeZone: "UTC"))["s"]?.count == 12)
    // A program on screen for some time is no source.
    let programs = ["Chrome", "Chrome", "Chrome", "Mail", "Mail", "Mail", "Chrome"].enumerated().map {
      "\($1)_2026-01-08_09-05-1\($0).png"
    }
    #expect(try read(batch(programs), options(timeZone: "UTC"))["s"]?.count == 7)
    let film = try #require(
      #expect(throws: BadBatch.self) {
        var film = try options()
        film.assumedStartMs = 0
        _ = try read(path, film)
      })
    #expect(film.advice.hasPrefix("encode with --name-time '%Q_%g' makes a session of each; "))
    let cameras = (0..<6).map { "cam\(1 + $0 % 2)_2026-01-08_09-05-1\($0).png" }
    #expect(throws: BadBatch.self) { try read(batch(cameras), options(timeZone: "UTC")) }
  }

  @Test func userIsNotAdvisedToNumberPicturesOfSeveralSources() throws {
    let names = (0..<6).flatMap { ["cam1_2026-01-08-09-05-1\($0).png", "cam2_2026-01-08-09-05-1\($0).png"] }
    let batch = try BatchSessions(reading: batch(names), options: options("%*%Y-%m-%d-%H-%M-%S", timeZone: "UTC"))
      .readers[0].batch
    #expect(
      batch.warnings.contains { $0.contains("sources alternate") } && !batch.warnings.contains { $0.contains("%q") })
  }

  /// Names that tell no time have sources, too.
  @Test func sourcesThatAlternateByTheTimesOfFilesAreNamed() throws {
    func folder(_ names: [String]) throws -> String {
      let path = try batch(names)
      for (index, name) in names.enumerated() {
        let time = Date(timeIntervalSince1970: 1_767_859_512 + Double(index))
        try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: path + "/" + name)
      }
      return path
    }
    func warnings(_ names: [String]) throws -> [String] {
      try BatchSessions(reading: folder(names), options: options(times: "mtime")).readers[0].batch.warnings
    }
    let names = (0..<5).flatMap { ["webcam-\($0).jpg", "screen-\($0).jpg"] }
    let found = try warnings(names)
    #expect(found.count == 1 && found[0].hasPrefix("pictures of 2 sources alternate, and become one film"), "\(found)")
    #expect(found[0].contains("/screen-*.jpg, or ") && found[0].hasSuffix("/webcam-*.jpg"))
    #expect(try warnings((0..<5).flatMap { ["cam0_000\($0).jpg", "cam1_000\($0).jpg"] }).count == 1)
    #expect(try warnings(names.sorted()) == [])
    #expect(try warnings((0..<9).map { "x\($0).jpg" }) == [])
  }

  /// Two cameras with the same names, each in a folder. Copies are of one camera.
  @Test func foldersThatAlternateAreRefused() throws {
    let names = (0..<4).flatMap { ["cam1/2026-01-08_09-05-1\($0).jpg", "cam2/2026-01-08_09-05-1\($0).jpg"] }
    let path = try batch(names)
    // The same file twice.
    #expect(try BatchSessions(reading: path, options: options(timeZone: "UTC")).readers[0].batch.frames.count == 8)
    for name in names where name.hasPrefix("cam2") {
      let jpeg = try Fixture("single-frame").bytes("1767859512340.jpg") + [0]
      try Data(jpeg).write(to: URL(fileURLWithPath: path + "/" + name))
    }
    let error = try #require(#expect(throws: BadBatch.self) { try read(path, options(timeZone: "UTC")) })
    #expect(error.cause == "pictures of 2 folders alternate: 4 in 'cam1', 4 in 'cam2'")
    #expect(error.advice.hasSuffix("\(path.shellWord)/cam1, or \(path.shellWord)/cam2"))
    #expect(try read(path + "/cam1", options(timeZone: "UTC"))["s"]?.count == 4)
    // The user's own pattern mixes them, with a warning.
    let mixed = try BatchSessions(reading: path, options: options("%Y-%m-%d_%H-%M-%S", timeZone: "UTC")).readers[0]
      .batch
    #expect(mixed.warnings.first?.contains("2 folders alternate") == true)
    // Other instants.
    let shifted = (0..<4).flatMap {
      ["a/2026-01-08_09-05-\(10 + 2 * $0).jpg", "b/2026-01-08_09-05-\(11 + 2 * $0).jpg"]
    }
    #expect(throws: BadBatch.self) { try read(batch(shifted), options(timeZone: "UTC")) }
    // A folder for each hour.
    let hours = (0..<4).flatMap { hour in (0..<4).map { "1\(hour)/2026-01-08_1\(hour)-05-1\($0).jpg" } }
    #expect(try read(batch(hours), options(timeZone: "UTC"))["s"]?.count == 16)
  }
}
