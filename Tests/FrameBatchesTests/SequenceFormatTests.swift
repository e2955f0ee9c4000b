import Foundation
import TestSupport
import Testing

@testable import FrameBatches

/// One file of several pictures, alone in its batch.
@Suite struct SequenceFormatTests: FrameTimesSuite {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private static let start: Int64 = 1_767_859_512_000
  /// A GIF of three pictures without pixels, of 50, 500 and 20 ms. Only headers are read.
  private static let gif: [UInt8] =
    Array("GIF89a".utf8) + [2, 0, 2, 0, 0, 0, 0]
    + [5, 50, 2].flatMap { (hundredths: UInt8) -> [UInt8] in
      [0x21, 0xF9, 4, 0, hundredths, 0, 0, 0, 0x2C, 0, 0, 0, 0, 2, 0, 2, 0, 0, 2, 0]
    } + [0x3B]

  /// A TIFF of three pages of 1×1 pixel, and a smaller copy.
  private static let tiff: [UInt8] = {
    func number(_ value: Int, _ count: Int) -> [UInt8] { (0..<count).map { UInt8(value >> (8 * $0) & 255) } }
    var file = Array("II".utf8) + number(42, 2) + number(8, 4)
    for page in 0..<4 {
      let entries = [(254, page == 1 ? 1 : 0), (256, 1), (257, 1)]
      file += number(3, 2) + entries.flatMap { number($0.0, 2) + number(4, 2) + number(1, 4) + number($0.1, 4) }
      file += number(page == 3 ? 0 : file.count + 4, 4)
    }
    return file
  }()

  private func folder(_ files: [(String, [UInt8])]) throws -> String {
    let name = "batch-\(UUID().uuidString)"
    let path = try scratch.directory(name)
    for (file, bytes) in files { try scratch.file("\(name)/\(file)", bytes) }
    return path
  }

  @Test func picturesFollowEachOtherFromTheTimeInTheName() throws {
    let path = try folder([("1767859512000.gif", Self.gif), ("readme.txt", [65])])
    let reader = try #require(try BatchSessions(reading: path, options: options()).readers.first)
    let batch = reader.batch
    #expect(reader.format == SequenceFormat.name && batch.capture == .onChange)
    #expect(batch.frames.map { $0.timeMs - Self.start } == [0, 50, 550] && batch.endMs == Self.start + 570)
    #expect(batch.frames.map(\.source) == ["1767859512000.gif#1", "1767859512000.gif#2", "1767859512000.gif#3"])
    #expect(batch.frames.map(\.look.content) == [.picture(0), .picture(1), .picture(2)])
    #expect(batch.refused.map(\.source) == ["readme.txt"] && batch.folder == nil)
  }

  @Test func everySourceOfTimesGivesTheStart() throws {
    let path = try folder([("Screen 2026-01-08 at 08.05.12.gif", Self.gif)])
    let expected: [String: [Int64]] = ["s": [0, 50, 550].map { Self.start + $0 }]
    #expect(try read(path, options("%*%Y-%m-%d at %H.%M.%S", timeZone: "UTC")) == expected)
    var start = InputOptions(session: "s")
    try start.setTimes(
      nameTime: nil, times: nil, start: "2026-01-08T08:05:12Z", fps: nil, timeZone: nil, startIsEnough: true)
    #expect(try read(path, start) == expected)
    #expect(
      try read(path, options(start: "2026-01-08T08:05:12Z", fps: "2")) == [
        "s": [0, 500, 1_000].map { Self.start + $0 }
      ])
    let error = #expect(throws: BadBatch.self) { try read(folder([("a.gif", Self.gif)]), options()) }
    #expect(error?.advice.contains("--start") == true, "\(error?.description ?? "")")
    var film = try options()
    film.assumedStartMs = Self.start
    #expect(try read(folder([("a.gif", Self.gif)]), film) == expected)
  }

  @Test func pagesNeedARate() throws {
    let path = try folder([("1767859512000.tif", Self.tiff)])
    let error = #expect(throws: BadBatch.self) { try read(path, options()) }
    #expect(
      error?.cause == "the file has 3 pages, and does not tell their times" && error?.advice.contains("--fps") == true)
    #expect(
      try read(path, options(start: "1767859512000", fps: "1")) == ["s": [0, 1_000, 2_000].map { Self.start + $0 }])
  }

  @Test func fileAmongOtherPicturesIsOneFrame() throws {
    let path = try folder([("1767859512000.gif", Self.gif), ("1767859515000.gif", Self.gif)])
    #expect(try read(path, options()) == ["s": [Self.start, Self.start + 3_000]])
  }

  @Test func startWithoutARateNeedsPicturesWithDurations() throws {
    var start = InputOptions(session: "s")
    try start.setTimes(nameTime: nil, times: nil, start: "1767859512000", fps: nil, timeZone: nil, startIsEnough: true)
    for name in ["1.jpg", "1.gif"] {
      let error = #expect(throws: BadBatch.self) { try read(batch([name, "2.jpg"]), start) }
      #expect(error?.advice == "add --fps or --interval")
    }
  }

  @Test func missingPicturesAreCountedInAWarning() throws {
    let path = try folder([("1767859512000.gif", Array(Self.gif.dropLast(4)))])
    let batch = try #require(try BatchSessions(reading: path, options: options()).readers.first).batch
    #expect(batch.frames.count == 2 && batch.warnings == ["the file breaks off, or is damaged, after its 2 pictures"])
  }
}
