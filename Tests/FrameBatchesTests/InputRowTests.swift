import TestSupport
import Testing

@testable import FileSystem
@testable import FrameBatches

/// Inputs of one call are placed in the order in which they are named.
@Suite struct InputRowTests: FrameTimesSuite {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private func row(_ options: InputOptions) -> InputRow {
    InputRow(options, isWithoutClock: false, overlaps: .refused(maxHoldMs: 5_000))
  }

  /// Returns the times of an input from the start; nil if it has the pictures of another one.
  private func place(_ path: String, _ row: inout InputRow, _ options: InputOptions) throws -> [Int64]? {
    switch try row.place(BatchSessions(reading: path, options: options), named: path) {
    case .shown(let placed): placed.readers[0].batch.frames.map { $0.timeMs - 1_767_859_512_000 }
    case .same: nil
    }
  }

  @Test func numberedInputsAreOneCounterWithoutRoundingErrors() throws {
    let options = try options(start: "1767859512000", fps: "30")
    var row = row(options)
    var times: [Int64] = []
    for part in 0..<7 { times += try #require(try place(batch(["a\(part).jpg", "b\(part + 1).jpg"]), &row, options)) }
    #expect(times == [0, 33, 67, 100, 133, 167, 200, 233, 267, 300, 333, 367, 400, 433])
  }

  @Test func missingNumbersOfAnInputStayMissing() throws {
    let options = try options(start: "1767859512000", fps: "10")
    var row = row(options)
    #expect(try place(batch(["1.jpg", "4.jpg"]), &row, options) == [0, 300])
    #expect(try place(batch(["7.jpg", "8.jpg"]), &row, options) == [400, 500])
  }

  @Test func sameInputTwiceIsOne() throws {
    for (options, names) in [
      (try options(start: "1767859512000", fps: "10"), ["1.jpg", "2.jpg"]),
      (try options(), ["1767859512000.jpg", "1767859513000.jpg"]),
    ] {
      var row = row(options)
      #expect(try place(batch(names), &row, options)?.count == 2)
      #expect(try place(batch(names), &row, options) == nil)
    }
  }

  @Test func otherPicturesForTheSameTimeAreRefused() throws {
    let options = try options()
    var row = row(options)
    #expect(try place(batch(["1767859512000.jpg", "1767859513000.jpg"]), &row, options) == [0, 1_000])
    let other = try batch(["1767859513500.jpg", "1767859514500.jpg"])
    let refused = #expect(throws: BadBatch.self) { try place(other, &row, options) }
    #expect(refused?.cause.contains("other pictures") == true)
    // Less than half an interval is a seam.
    #expect(try place(batch(["1767859513900.jpg", "1767859514900.jpg"]), &row, options) == [1_900, 2_900])
    // A gap has room.
    #expect(try place(batch(["1767859522000.jpg"]), &row, options) == [10_000])
    #expect(try place(batch(["1767859517000.jpg"]), &row, options) == [5_000])
  }

  @Test func inputBehindALostNumberedOneIsRefused() throws {
    let options = try options(start: "1767859512000", fps: "10")
    var row = row(options)
    row.lose("part1")
    #expect(throws: BadBatch.self) { try place(batch(["1.jpg"]), &row, options) }
  }

  @Test func numberedAndDatedInputsNeedAStart() throws {
    let numbered = try options(start: "1767859512000", fps: "10")
    var row = InputRow(numbered, isWithoutClock: true, overlaps: .refused(maxHoldMs: 5_000))
    #expect(try place(batch(["1.jpg"]), &row, numbered) == [0])
    let dated = try batch(
      ["a.jpg"], json: #"{"version":1,"session":"s","frames":[{"file":"a.jpg","timeMs":1767859999000}]}"#)
    #expect(throws: BadBatch.self) { try place(dated, &row, numbered) }
  }

  // MARK: - Folders

  private func folders(_ names: [String]) throws -> NumberedFolders? {
    try NumberedFolders(in: batch(names), limits: Limits())
  }

  @Test func foldersOfNumberedPicturesAreInNaturalOrder() throws {
    #expect(try folders(["part10/1.jpg", "part2/1.jpg", "part2/2.jpg"])?.paths == ["part2", "part10"])
    #expect(try folders(["2/10/a1.jpg", "2/9/a1.jpg", "10/1/a1.jpg"])?.paths == ["2/9", "2/10", "10/1"])
    #expect(try folders(["part1/1.jpg", "1.jpg"]) == nil)
    #expect(try folders(["part1/1.jpg"])?.fault(in: "job") { _ in "" } == nil)
  }

  @Test func foldersThatAreNoCounterAreRefused() throws {
    let words = try #require(try folders(["full/1.jpg", "thumbs/1.jpg"]))
    let fault = words.fault(in: "job") { $0.joined(separator: " ") }
    #expect(fault?.advice == "for a film of each: job/full; for one film of all: job/full job/thumbs")
    let unnumbered = try #require(try folders(["part1/1.jpg", "part2/cover.jpg"]))
    #expect(unnumbered.fault(in: "job") { _ in "" }?.cause.contains("'part2/cover.jpg'") == true)
  }

  // MARK: - Rates

  @Test(arguments: [
    ("30000/1001", [0, 33, 67, 100]), ("1/5", [0, 5_000, 10_000, 15_000]), ("29.97", [0, 33, 67, 100]),
    ("0.033333333", [0, 30_000, 60_000, 90_000]), ("2.5/10", [0, 4_000, 8_000, 12_000]),
  ]) func ratesOfFFmpegAreTaken(text: String, times: [Int64]) throws {
    let rate = try #require(CaptureRate(framesPerSecond: text))
    #expect((0..<4).map { rate.offsetMs(of: $0) } == times)
    #expect((0..<4).map { rate.number(atOffsetMs: times[$0]) } == [0, 1, 2, 3])
  }

  @Test(arguments: ["1/0", "0/1", "/", "1/", "/5", "1/2/3", "1/3601", "1001/1", "-1/5", "1.1.1", "1e3", ""])
  func otherRatesAreRefused(text: String) { #expect(CaptureRate(framesPerSecond: text) == nil) }
}
