import Foundation
import TestSupport
import Testing

@testable import FileSystem
@testable import FrameBatches
@testable import JSON

/// Several files at one instant, and lists whose order is not that of their times.
@Suite struct FrameOrderTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private static let start: Int64 = 1_767_859_512_000

  /// Returns the start of a PNG, up to its size.
  private static func png(_ width: UInt8, _ height: UInt8) -> [UInt8] {
    [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13] + Array("IHDR".utf8)
      + [0, 0, 0, width, 0, 0, 0, height, 8, 2, 0, 0, 0]
  }

  private func folder(_ files: [(name: String, bytes: [UInt8])]) throws -> String {
    let path = try scratch.directory("batch-\(UUID().uuidString)")
    for (name, bytes) in files {
      let file = URL(fileURLWithPath: path + "/" + name)
      try FileManager.default.createDirectory(
        at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
      try Data(bytes).write(to: file)
    }
    return path
  }

  private func read(
    _ path: String, nameTime: String? = nil, times: String? = nil, start: String? = nil, fps: String? = nil
  ) throws -> Batch {
    var options = InputOptions(session: "s")
    try options.setTimes(nameTime: nameTime, times: times, start: start, fps: fps, timeZone: "UTC")
    return try BatchSessions(reading: path, options: options).readers[0].batch
  }

  private func tar(_ path: String) throws -> String {
    let archive = scratch.path("\(UUID().uuidString).tar")
    try Tool.output("tar", ["-cf", archive, "-C", path, "--sort=name", "."])
    return archive
  }

  /// An observatory's day: pictures, and thumbnails with the same names in a folder.
  private func day(_ count: Int = 4) throws -> String {
    try folder(
      (0..<count).flatMap { index in
        let name = "image-2026010808051\(index).png"
        return [(name, Self.png(200, 100)), ("thumbnails/\(name)", Self.png(20, 10))]
      })
  }

  // MARK: - Several files at one instant

  /// The plain form leaves files in folders out where others lie beside the folders; so does each form with times in names.
  @Test func thumbnailsInAFolderBesideThePicturesAreLeftOut() throws {
    let batch = try read(day(), nameTime: "image-%Y%m%d%H%M%S")
    #expect(batch.frames.map { $0.paths[0].contains("/") } == [false, false, false, false])
    #expect(batch.refused.map(\.reason) == Array(repeating: "in a folder of its own", count: 4))
    #expect(batch.warnings.count == 1)
    #expect(batch.warnings[0].hasPrefix("4 of 8 pictures are left out; 4 of these, the first thumbnails/image-"))
    for form in ["2026010%dT080512Z.png", "1_1_176785951%d000.jpeg", "176785951%d000.png"] {
      let names = (1...3).map { form.replacingOccurrences(of: "%d", with: "\($0)") }
      let path = try folder(names.flatMap { [($0, Self.png(200, 100)), ("small/" + $0, Self.png(20, 10))] })
      let batch = try read(path)
      #expect(batch.frames.map { $0.paths[0] } == names, "\(form)")
    }
    // Days in folders are no reason to read the folders where pictures lie beside them.
    let mixed = try folder([
      ("1767859512000.png", Self.png(9, 9)), ("2026-01-08/1767859512000.png", Self.png(9, 9)),
    ])
    #expect(try read(mixed).frames.map { $0.paths[0] } == ["1767859512000.png"])
  }

  @Test func fileInTheShallowestFolderOfAnArchiveIsShown() throws {
    for (path, pattern) in [
      (try day(), "image-%Y%m%d%H%M%S"),
      (
        try folder(
          (0..<4).flatMap { [("176785951\($0)000.png", Self.png(9, 9)), ("a/176785951\($0)000.png", Self.png(99, 9))] }),
        nil
      ),
    ] as [(String, String?)] {
      let batch = try read(tar(path), nameTime: pattern)
      #expect(batch.frames.count == 8)
      #expect(batch.frames.map(\.folderDepth) == [0, 1, 0, 1, 0, 1, 0, 1])
      #expect(batch.frames[1].fullName == batch.frames[1].paths[0])
      #expect(batch.warnings.count == 1)
      #expect(batch.warnings[0].hasPrefix("4 of 4 instants have more than one file, so 4 of 8 are not shown"))
      #expect(batch.warnings[0].contains("to leave that folder out, move it out of the batch"))
    }
  }

  @Test func largerOfTwoPicturesInOneFolderIsShown() throws {
    // The later name is the smaller picture.
    let names = (0..<3).flatMap { index in
      [("176785951\(index)000.jpg", Self.png(200, 100)), ("176785951\(index)000.png", Self.png(20, 10))]
    }
    let path = try folder(names)
    for path in [path, try tar(path)] {
      let batch = try read(path)
      #expect(batch.frames.map { String($0.source.suffix(3)) } == ["jpg", "png", "jpg", "png", "jpg", "png"])
    }
    // A file without a size is refused when it is decoded, with its own reason.
    let broken = try folder([("1767859512000.jpg", Array("rubbish".utf8)), ("1767859512000.png", Self.png(2, 1))])
    #expect(try read(broken).frames.map(\.source) == ["1767859512000.jpg", "1767859512000.png"])
  }

  /// Most programs write the sizes of a TIFF behind its pixels.
  @Test func largerOfTwoTIFFsIsShown() throws {
    func tiff(_ width: UInt8, _ height: UInt8) -> [UInt8] {
      // The directory's offset, 300 000; in it a width and a height.
      let head: [UInt8] = [0x49, 0x49, 42, 0, 0xE0, 0x93, 4, 0]
      let entries: [UInt8] = [0, 1, 3, 0, 1, 0, 0, 0, width, 0, 0, 0, 1, 1, 3, 0, 1, 0, 0, 0, height, 0, 0, 0]
      return head + [UInt8](repeating: 0, count: 300_000 - head.count) + [2, 0] + entries + [0, 0, 0, 0]
    }
    let path = try folder([("1767859512000.tif", tiff(200, 100)), ("1767859512000.tiff", tiff(20, 10))])
    for path in [path, try tar(path)] {
      #expect(try read(path).frames.map(\.source) == ["1767859512000.tif", "1767859512000.tiff"])
    }
  }

  /// A producer may list a picture, and then the same screen redacted and smaller.
  @Test func fileWithMasksIsShownBeforeALargerOneWithoutAndTheOtherIsHidden() throws {
    let list = """
      {"version":1,"frames":[{"file":"a.png","timeMs":1767859512000},{"file":"b.png","timeMs":1767859512000,\
      "masks":[{"x":0,"y":0,"width":9,"height":9}]}]}
      """
    let path = try folder([
      ("a.png", Self.png(200, 100)), ("b.png", Self.png(20, 10)), ("batch.json", Array(list.utf8)),
    ])
    for path in [path, try tar(path)] {
      let frames = try read(path).frames
      #expect(frames.map(\.source) == ["b.png", "a.png"])
      #expect(frames[0].look.blackout == nil && frames[0].look.hidesAnything)
      #expect(frames[1].look.blackout == "another file of its instant has masks")
    }
  }

  @Test func laterNameIsShownOfTwoEqualPictures() throws {
    let path = try folder([("1767859512000.jpg", Self.png(2, 1)), ("1767859512000.png", Self.png(2, 1))])
    let archive = scratch.path("reversed.tar")
    try Tool.output("tar", ["-cf", archive, "-C", path, "1767859512000.png", "1767859512000.jpg"])
    for path in [path, archive] {
      let batch = try read(path)
      #expect(batch.frames.map(\.source) == ["1767859512000.png", "1767859512000.jpg"])
      #expect(batch.warnings == [])
    }
  }

  /// Numbers in folders begin again.
  @Test func numberedPicturesInFoldersBesideOthersAreLeftOut() throws {
    let path = try folder([("a/1.png", Self.png(20, 10)), ("1.png", Self.png(2, 1)), ("z/1.png", Self.png(2, 1))])
    let batch = try read(tar(path), start: "\(Self.start)", fps: "1")
    #expect(batch.frames.map { $0.paths[0] } == ["1.png"])
    #expect(Set(batch.refused.map(\.source)) == ["a/1.png", "z/1.png"])
  }

  /// The thumbnail had a place of its own in the second.
  @Test func filesOfOneNumberInASecondAreOfOneInstant() throws {
    let names = (0..<2).map { "01-20260108080512-0\($0).png" }
    let path = try folder(names.flatMap { [($0, Self.png(20, 10)), ("small/" + $0, Self.png(2, 1))] })
    let batch = try read(tar(path))
    #expect(batch.frames.map(\.timeMs) == [Self.start, Self.start, Self.start + 500, Self.start + 500])
    #expect(batch.frames.map(\.folderDepth) == [0, 1, 0, 1])
  }

  @Test func manyRecordsAtOneInstantAreAWarning() throws {
    let events = (0..<5).map { RRWebTests.snapshot($0) }
    let batch = try RRWebTests.batch("[\((events + events).joined(separator: ","))]")
    #expect(batch.frames.map(\.source).first == "b#5")
    #expect(batch.warnings.contains { $0.hasPrefix("5 of 5 instants have more than one record, so 5 of 10 are not") })
  }

  @Test func descriptionOfABatchKeepsTheFileThatIsShown() throws {
    let path = try folder([("1767859512000.jpg", Self.png(2, 1)), ("1767859512000.png", Self.png(2, 1))])
    let batch = try read(path)
    try Data(NativeFormat.description(of: batch)).write(to: URL(fileURLWithPath: path + "/batch.json"))
    #expect(try read(path).frames.map(\.source) == batch.frames.map(\.source))
  }

  // MARK: - A clock that steps back

  private func listed(_ seconds: [Int64]) throws -> Batch {
    let entries = seconds.enumerated().map {
      #"{"file":"\#($0.offset).png","timeMs":\#(Self.start + 1_000 * $0.element)}"#
    }
    let json = #"{"version":1,"frames":[\#(entries.joined(separator: ","))]}"#
    return try read(
      folder(
        seconds.indices.map { ("\($0).png", Self.png(2, 1)) } + [("batch.json", Array(json.utf8))]))
  }

  @Test func listOutOfOrderHasANoteAtThePlaceAndAWarning() throws {
    let batch = try listed([0, 2, 4, 6, 1, 3, 5, 7])
    #expect(batch.frames.compactMap(\.note) == ["comes after 3.png, whose time is 5000 ms later"])
    #expect(batch.frames.first { $0.note != nil }?.source == "4.png")
    #expect(batch.warnings.count == 1)
    #expect(
      batch.warnings[0].hasPrefix(
        "the clock stepped back, or the list is out of order: 3 of 8 frames come after a frame with a later time, "
          + "the first is 4.png (5000 ms before 3.png)"))
    #expect(try listed([0, 1, 2]).warnings == [])
  }

  @Test func notesOnAReversedListAreLimited() throws {
    let batch = try listed((0..<60).reversed())
    #expect(batch.frames.count { $0.note != nil } == 20)
    #expect(batch.warnings[0].contains("59 of 60 frames"))
  }

  @Test func recordsOutOfOrderHaveANoteAndAWarning() throws {
    let lines = [0, 2, 1].map {
      #"{"data":"\#(RRWebTests.pixel)","metadata":{"timestamp":176785951\#($0)}}"#
    }
    let source = BatchSource(
      name: "b", contents: StreamContents(.memory(Array(lines.joined(separator: "\n").utf8))), session: "b")
    let screencast = try #require(
      try BatchSessions(source, as: ScreencastFormat.self, name: "b", limits: Limits())?.readers[0].batch)
    let events = try RRWebTests.batch("[\([0, 2, 1].map { RRWebTests.snapshot($0) }.joined(separator: ","))]")
    for batch in [screencast, events] {
      #expect(batch.frames.map(\.note) == [nil, "comes after b#1, whose time is 1000 ms later", nil])
      #expect(batch.warnings.count == 1)
    }
    let stream = try BatchReader(reading: Fixture("formats/openreplay-frames-bad").path + "/out-of-order.frames").batch
    #expect(stream.frames.contains { $0.note?.hasPrefix("comes after ") == true })
  }

  @Test func numbersInNamesThatDisagreeWithTheTimesAreAWarning() throws {
    let steps = try folder(
      [("step_1_20260108@080512", 1), ("step_2_20260108@080510", 2), ("step_3_20260108@080514", 3)].map {
        ($0.0, Self.png(2, 1))
      })
    let batch = try read(steps)
    #expect(batch.frames.compactMap(\.note).count == 1 && batch.warnings.count == 1)
    let files = try folder((1...3).map { ("frame_\($0).png", Self.png(2, 1)) })
    for (number, second) in [(1, 3), (2, 2), (3, 1)] {
      try FileManager.default.setAttributes(
        [.modificationDate: Date(timeIntervalSince1970: 1_767_859_512 + Double(second))],
        ofItemAtPath: files + "/frame_\(number).png")
    }
    #expect(try read(files, times: "mtime").warnings.count == 1)
    // motion's numbers begin again with each second.
    let motion = try folder(
      ["1-20260108080512-0", "1-20260108080512-1", "1-20260108080513-0"].map { ($0 + ".png", Self.png(2, 1)) })
    #expect(try read(motion).warnings == [])
  }

  // MARK: - Pauses and clocks that jump

  /// - Parameter seconds: from 2026-01-08T08:05:12Z.
  private func plain(_ seconds: [Int64], limits: Limits = Limits()) throws -> Batch {
    let path = try folder(seconds.map { ("\(Self.start + 1_000 * $0).png", Self.png(2, 1)) })
    return try BatchSessions(reading: path, limits: limits).readers[0].batch
  }

  private static let day: Int64 = 86_400

  /// A month of working days lost all but the first week.
  @Test func pausesBetweenGroupsOfFramesAreNoJumpsOfTheClock() throws {
    let weeks = try plain((0..<4).flatMap { week in (0..<5).map { 7 * week * Self.day + $0 * Self.day } })
    #expect(weeks.frames.count == 20 && weeks.refused == [] && weeks.warnings == [])
    // Each picture may be alone.
    #expect(try plain((0..<12).map { $0 * 3 * Self.day }).frames.count == 12)
  }

  @Test func longPauseIsAWarningWithCounts() throws {
    let years = try plain([0, 1, 2, 3, 4, 5].map { $0 < 3 ? $0 : 4_000 * Self.day + $0 })
    #expect(years.frames.count == 6)
    #expect(
      years.warnings == [
        "1 pause of more than 7 days between frames, the longest of 4000 days before \(years.frames[3].source): taken as a pause, "
          + "not as a jump of the clock"
      ])
  }

  /// A clock without a battery begins at one date after each start.
  @Test func fewFramesYearsBeforeAllOthersAreRefused() throws {
    let batch = try plain([-4_000 * Self.day, 1 - 4_000 * Self.day, 2 - 4_000 * Self.day] + (0..<50).map { $0 })
    #expect(batch.frames.count == 50 && batch.refused.count == 3)
    #expect(batch.warnings.count == 1 && batch.warnings[0].hasPrefix("3 of 53 frames are refused"))
    // Of many such pictures, nobody knows which clock was right.
    #expect(try plain((0..<20).map { $0 < 8 ? $0 - 4_000 * Self.day : $0 }).frames.count == 20)
  }

  @Test func frameWhoseTimeContradictsItsPlaceInTheListIsRefused() throws {
    let batch = try listed([0, 1, 2, 3 * Self.day, 3, 4, 5])
    #expect(batch.frames.count == 6 && batch.refused.map(\.source) == ["3.png"])
    #expect(batch.warnings.map { $0.hasPrefix("1 of 7 frames are refused") } == [true])
    // At the end of the list, it may be the first one behind a pause.
    #expect(try listed([0, 1, 2, 3, 4, 5, 3 * Self.day]).frames.count == 7)
  }

  @Test func timesAheadOfTheClockAreAWarningWithCounts() throws {
    var limits = Limits()
    limits.now = { Self.start + 1_000 }
    #expect(try plain([0, 1, Self.day], limits: limits).warnings == [])
    let ahead = try plain([0, Self.day + 2, Self.day + 3], limits: limits)
    #expect(ahead.frames.count == 3 && ahead.warnings.count == 1)
    #expect(
      ahead.warnings[0].hasPrefix("2 of 3 frames have times more than a day ahead of this machine's clock; the last is")
    )
  }

  // MARK: - Names that a pattern does not read, or reads as one second

  @Test func patternThatTakesFewNamesIsAWarningWithCounts() throws {
    let path = try folder(
      (0..<12).map { ($0 < 3 ? "a_176785951\($0).png" : "b-17678595\($0 + 10).png", Self.png(2, 1)) })
    let batch = try read(path, nameTime: "a_%s")
    #expect(batch.frames.count == 3)
    #expect(batch.warnings.count == 1)
    #expect(batch.warnings[0].hasPrefix("9 of 12 pictures are left out; 9 of these, the first b-1767859513.png: "))
    #expect(batch.warnings[0].hasSuffix("; --name-time '%*%s' reads all names"))
    #expect(try read(path, nameTime: "%*%s").warnings == [])
    let plain = try folder(
      (0..<6).map { ("176785951\($0)000.png", Self.png(2, 1)) } + (0..<4).map { ("shot\($0).png", Self.png(2, 1)) })
    #expect(try read(plain).warnings.first?.hasPrefix("4 of 10 pictures are left out") == true)
  }

  @Test func manyPicturesInOneSecondAreAWarningWithCounts() throws {
    let path = try folder((0..<30).map { ("cam_20260108_000000_\($0 + 100).png", Self.png(2, 1)) })
    let spread = try read(path, nameTime: "cam_%Y%m%d_%H%M%S_%q")
    #expect(spread.frames.count == 30)
    #expect(spread.warnings.map { $0.hasPrefix("30 of 30 names tell the same second, 1767830400000 in") } == [true])
    let equal = try read(path, nameTime: "cam_%Y%m%d_%H%M%S_%*")
    #expect(equal.warnings.count == 2)
    #expect(equal.warnings.contains { $0.contains("29 of 30 are not shown") && $0.contains("%q in --name-time") })
    // A burst of a motion detector is none.
    let burst = try folder(
      (0..<3).flatMap { second in (0..<10).map { ("01-2026010808051\(second)-0\($0).png", Self.png(2, 1)) } })
    #expect(try read(burst).warnings == [])
  }
}
