import Foundation
import TestSupport
import Testing

/// A folder that has grown since it was encoded is continued.
@Suite struct GrowingFolderTests: GrowingFolderSuite {
  let scratch: ScratchDirectory
  let folder: NumberedFolder

  init() throws {
    scratch = try ScratchDirectory()
    folder = try NumberedFolder("yard", in: scratch)
  }

  private func film(_ output: String = "out") throws -> ShownFilm {
    let file = scratch.path("film.mp4")
    let result = try EncoderWorker.run("stitch", scratch.path(output + "/yard"), "--to", file)
    try #require(result.status == 0 && result.errors == "", "\(result.errors)")
    return try ShownFilm(file)
  }

  enum Times: String, CaseIterable { case names, numbers, modified }

  private func add(_ range: Range<Int>, _ times: Times) throws {
    for number in range {
      let timeMs = NumberedFolder.startMs + Int64(number) * 2_000
      switch times {
      case .names: try folder.add("\(timeMs).png", number)
      case .numbers: try folder.add(String(format: "shot_%04d.png", number), number)
      case .modified: try folder.add("shot \(number).png", number, modifiedMs: timeMs)
      }
    }
  }

  /// The folder has these numbers of pictures, one after the other: one more, some more in the last part, a whole part more, several
  /// parts more; at the end of a part, and in it.
  @Test(arguments: Times.allCases, [[4, 5, 6, 7, 8, 20], [6, 12, 14, 30], [9, 11, 17, 18, 19]])
  func grownFolderIsContinued(times: Times, counts: [Int]) throws {
    let options =
      switch times {
      case .names: [String]()
      case .numbers: ["--start", "\(NumberedFolder.startMs)", "--fps", "0.5"]
      case .modified: ["--times", "mtime"]
      }
    var before: [String: FileState] = [:]
    var earlier = 0
    for count in counts {
      try add(earlier..<count, times)
      let result = try encode(options)
      #expect(result.status == 0, "\(count): \(result.errors)")
      let lines = try result.jsonLines(as: EncodedLine.self)
      #expect(lines.reduce(0) { $0 + ($1.duplicate ? 0 : $1.frames) } == count - earlier, "\(count)")
      #expect(lines.count(where: \.duplicate) == earlier / 6, "\(count)")
      #expect(lines.allSatisfy { $0.refused.isEmpty })
      let after = try snapshot(of: session().path).filter { $0.key.hasPrefix("segment-") }
      #expect(before.allSatisfy { after[$0.key] == $0.value }, "\(count)")
      (before, earlier) = (after, count)
    }
    try #require(try encode(options, to: "whole", limit: 100).status == 0)
    let (grown, whole) = (try session(), try session("whole"))
    #expect(grown.captured.map(\.timeMs) == whole.captured.map(\.timeMs))
    #expect(grown.captured.map(\.source) == whole.captured.map(\.source))
    #expect(grown.index.gaps == [] && grown.index.durationMs == whole.index.durationMs)
    let (one, other) = (try film(), try film("whole"))
    #expect(one.entries == other.entries && one.durations == other.durations)
    for entry in one.entries { #expect(one.number(at: entry.tick) == other.number(at: entry.tick)) }
    let again = try encode(options)
    #expect(try again.jsonLines(as: EncodedLine.self).allSatisfy(\.duplicate))
    #expect(try snapshot(of: session().path).filter { $0.key.hasPrefix("segment-") } == before)
  }

  /// The median distance of a folder changes when it grows: the batches that are published keep theirs.
  @Test func otherIntervalIsNoOtherFolder() throws {
    let options = ["--capture", "onChange"]
    var now: Int64 = 0
    var offsets: [Int64] = []
    for number in 0..<20 {
      offsets.append(now)
      now += number < 8 ? 2_000 + Int64(number) * 10 : 9_000
    }
    try folder.add(at: Array(offsets[..<8]))
    try #require(try encode(options).status == 0)
    let interval = try session().manifests[0].intervalMs
    try folder.add(at: Array(offsets[8...]), from: 8)
    let result = try encode(options)
    #expect(result.status == 0, "\(result.errors)")
    let session = try session()
    #expect(session.captured.map(\.timeMs) == offsets.map { NumberedFolder.startMs + $0 })
    #expect(session.manifests.last?.intervalMs == 9_000 && session.manifests[0].intervalMs == interval)
  }

  /// The last picture of the first run is held for an interval.
  @Test func laterPictureThanThatIsAGap() throws {
    try folder.add(at: [0, 1_000, 2_000])
    try #require(try encode().status == 0)
    try folder.add(at: [7_000, 8_000])
    try #require(try encode().status == 0)
    let session = try session()
    #expect(session.captured.count == 5)
    #expect(session.index.gaps.map { [$0.startMs, $0.endMs] } == [[3_000, 7_000].map { NumberedFolder.startMs + $0 }])
  }

  /// Nothing that is published changes: a picture that came before the last one of the first run was to go is refused.
  @Test func earlierPictureThanThatIsRefused() throws {
    try folder.add(at: [0, 1_000, 2_000])
    try #require(try encode().status == 0)
    try folder.add(at: [2_200])
    let alone = try encode()
    #expect(alone.status == 0 && alone.errors.contains("but the picture before it was published"), "\(alone.errors)")
    #expect(try alone.jsonLines(as: EncodedLine.self).map(\.refused.count) == [1])
    try folder.add(at: [2_700, 3_700], from: 4)
    let result = try encode()
    let lines = try result.jsonLines(as: EncodedLine.self)
    #expect(result.status == 0 && lines.map(\.frames) == [2], "\(result.errors)")
    #expect(lines.flatMap(\.refused).map(\.source) == ["\(NumberedFolder.startMs + 2_200).png"])
    let session = try session()
    #expect(session.captured.map { $0.timeMs - NumberedFolder.startMs } == [0, 1_000, 2_000, 2_700, 3_700])
    #expect(session.manifests.flatMap(\.refused).count == 1 && session.index.gaps == [])
    #expect(try encode().jsonLines(as: EncodedLine.self).map(\.duplicate) == [true])
  }

  private func addBroken(_ offset: Int64) throws {
    try scratch.file("yard/\(NumberedFolder.startMs + offset).png", Array("no picture".utf8))
  }

  @Test func picturesThatCannotBeDecodedAreNoObstacle() throws {
    try addBroken(0)
    try folder.add(at: [1_000, 2_000])
    try addBroken(2_400)
    try #require(try encode(limit: 9).status == 0)
    try folder.add(at: [3_400, 4_400], from: 2)
    try addBroken(5_400)
    let result = try encode(limit: 9)
    #expect(result.status == 0, "\(result.errors)")
    let session = try session()
    #expect(session.captured.map { $0.timeMs - NumberedFolder.startMs } == [1_000, 2_000, 3_400, 4_400])
    #expect(session.index.gaps == [])
    #expect(try encode(limit: 9).jsonLines(as: EncodedLine.self).map(\.duplicate) == [true])
  }

  /// A nightly run meets the last picture while it is written.
  @Test(arguments: [["--capture", "onChange", "--segment", "600"], []]) func halfWrittenPictureIsLeftForTheNextRun(
    options: [String]
  ) throws {
    try folder.add(at: [0, 60_000, 120_000, 180_000])
    try addBroken(240_000)
    let first = try encode(options, limit: 100)
    #expect(try first.status == 0 && captured() == [0, 60_000, 120_000, 180_000], "\(first.errors)")
    #expect(first.errors.contains("left for the next run"))
    #expect(try session().manifests.flatMap(\.refused).isEmpty)
    #expect(try encode(options, limit: 100).jsonLines(as: EncodedLine.self).map(\.duplicate) == [true])
    try folder.add(at: (4..<10).map { $0 * 60_000 }, from: 4)
    let second = try encode(options, limit: 100)
    #expect(try second.status == 0 && captured() == (0..<10).map { $0 * 60_000 }, "\(second.errors)")
    if !options.isEmpty { #expect(try session().index.gaps == []) }
    #expect(try EncoderWorker.run("verify", scratch.path("out/yard")).status == 0)
  }

  /// It stays broken, and pictures follow it.
  @Test func brokenPictureBetweenTwoRunsIsRefused() throws {
    try folder.add(at: [0, 1_000])
    try addBroken(2_000)
    try #require(try encode().status == 0)
    try folder.add(at: [3_000, 4_000], from: 3)
    let second = try encode()
    #expect(try second.status == 0 && captured() == [0, 1_000, 3_000, 4_000], "\(second.errors)")
    #expect(try session().manifests.flatMap(\.refused).count == 1)
    #expect(try encode().jsonLines(as: EncodedLine.self).map(\.duplicate) == [true])
  }

  /// A part of broken pictures cannot be encoded, until a good one comes.
  @Test func partWithoutAPictureIsContinued() throws {
    try folder.add(at: [0, 1_000, 2_000])
    try addBroken(3_000)
    let first = try encode(limit: 3)
    #expect(first.status == 65 && first.errors.contains("4 pictures in 2 batches: 1 published, 1 failed"))
    #expect(first.errors.contains("none of its 1 frames can be decoded"), "\(first.errors)")
    try folder.add(at: [3_000, 4_000], from: 3)
    #expect(try encode(limit: 3).status == 0)
    #expect(try session().captured.map { $0.timeMs - NumberedFolder.startMs } == [0, 1_000, 2_000, 3_000, 4_000])
  }

  @Test(arguments: [-500, 500, 1_500]) func pictureInPublishedTimeIsAConflict(offset: Int64) throws {
    try folder.add(at: (0..<9).map { $0 * 1_000 })
    try #require(try encode().status == 0)
    let before = try snapshot(of: session().path)
    try folder.add(at: [offset], from: 50)
    let result = try encode()
    #expect(result.status == 65 && result.errors.contains("with other content was published"), "\(result.errors)")
    #expect(try snapshot(of: session().path).filter { before[$0.key] != nil } == before)
  }

  @Test func changedPictureIsAConflict() throws {
    try folder.add(at: (0..<9).map { $0 * 1_000 })
    try #require(try encode().status == 0)
    let before = try snapshot(of: session().path)
    try folder.add(at: [7_000], from: 50)
    try folder.add(at: [9_000], from: 9)
    let result = try encode()
    #expect(result.status == 65 && result.errors.contains("1 published before, 1 failed"), "\(result.errors)")
    #expect(try snapshot(of: session().path) == before)
  }
}
