import Foundation
import JSON
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import SegmentEncoder
@testable import Sessions

/// The files of words beside segments.
@Suite struct SegmentTextTests {
  private let package: GrowingPackage
  private let session: SessionDirectory

  init() throws {
    package = try GrowingPackage()
    session = SessionDirectory(output: package.output, session: try package.session)
  }

  /// Returns the words of a segment.
  private func text(_ segment: PublishedSegment, _ words: [String] = ["violet"]) -> SegmentText {
    SegmentText(
      session: session.session, startMs: segment.startMs, endMs: segment.endMs, sha256: segment.sha256,
      engine: "tesseract 5", language: "eng", pictures: 1, unreadMs: [segment.startMs], leftOut: 0,
      words: words.map {
        VisibleWord(
          text: $0, box: PictureRegion(x: 1, y: 2, width: 30, height: 4), confidence: 96,
          shownMs: segment.startMs..<segment.endMs)
      })
  }

  @discardableResult
  private func write(_ segment: PublishedSegment) throws -> String {
    let path = session.path + "/" + SegmentName.text(segment.startMs)
    try Data(text(segment).bytes).write(to: URL(fileURLWithPath: path))
    return path
  }

  private func publish(_ seconds: Range<Int> = 0..<20) throws -> [PublishedSegment] {
    try package.publish(seconds, package.views())
    return try session.publishedStarts().map(session.segment)
  }

  private func problems() throws -> [String] { try Verification.report(on: session.path).problems.map(\.file) }

  private func change(_ path: String, _ old: String, _ new: String) throws {
    let text = try String(contentsOfFile: path, encoding: .utf8)
    try text.replacing(old, with: new).write(toFile: path, atomically: true, encoding: .utf8)
  }

  @Test func fileTellsWhetherItHasAllWords() throws {
    // One picture could not be read.
    let some = String(decoding: text(.made(1_000, 6_000)).bytes, as: UTF8.self)
    let all = some.replacing(#""unreadMs":[1000]"#, with: #""unreadMs":[]"#)
    #expect(!SegmentText.isWhole(Array(some.utf8)) && SegmentText.isWhole(Array(all.utf8)))
    #expect(!SegmentText.isWhole(Array(all.replacing(#""leftOut":0"#, with: #""leftOut":3"#).utf8)))
  }

  @Test func fileIsReadAsItWasWritten() throws {
    let text = text(.made(1_767_859_512_340, 1_767_859_517_340), ["violet", "straße \"x\\", "日本"])
    #expect(try SegmentText(text.bytes) == text)
    #expect(SegmentName.text(1_767_859_512_340) == "segment-1767859512340.text.json")
    #expect(SegmentName.start(ofText: "segment-1767859512340.text.json") == 1_767_859_512_340)
    #expect(SegmentName.start(ofManifest: "segment-1767859512340.text.json") == nil)
  }

  @Test(arguments: [
    (#""x":1"#, #""x":-1"#), (#""width":30"#, #""width":999999"#), (#""confidence":96"#, #""confidence":101"#),
    (#""fromMs":1000"#, #""fromMs":999"#), (#""untilMs":6000"#, #""untilMs":6001"#),
    (#""untilMs":6000"#, #""untilMs":1e400"#), (#""text":"violet""#, #""text":7"#),
    ("segment-text/1", "segment-text/2"),
    (#""endMs":6000"#, #""endMs":1000"#), ("segment-0000000001000", "segment-0000000001001"),
    (#""pictures":1"#, #""pictures":-1"#), (#""words":["#, #""words":{"#),
    (#""session":"walk""#, #""session":"../walk""#),
  ])
  func anotherFileIsRefused(_ old: String, _ new: String) throws {
    let text = String(decoding: text(.made(1_000, 6_000)).bytes, as: UTF8.self)
    try #require(text.contains(old))
    #expect(throws: JSONError.self) { try SegmentText(Array(text.replacing(old, with: new).utf8)) }
  }

  /// The number of a segment's first picture counts from the picture before in its batch, which another batch may part from it.
  @Test func changeSinceAnotherBatchIsUnknown() {
    func segment(_ startMs: Int64, batch: String, part: Int) -> PublishedSegment {
      PublishedSegment.made(startMs, startMs + 5_000, batch: batch, part: part, parts: 3)
        .showing([.init(timeMs: startMs, holdMs: 5_000, isCaptured: true, changedBlocks: 0)])
    }
    let last = segment(11_000, batch: "a", part: 2)
    func blocks(_ before: PublishedSegment?) -> Int? {
      SegmentTextReading.changedBlocks(of: last.frames[0], in: last, after: before)
    }
    #expect(blocks(segment(1_000, batch: "a", part: 1)) == 0 && blocks(nil) == 0)
    #expect(blocks(segment(6_000, batch: "b", part: 1)) == nil)
    #expect(blocks(segment(6_000, batch: "a", part: 3)) == nil)
  }

  @Test func verifyKnowsTheFilesAndChecksThem() throws {
    let segments = try publish()
    let path = try write(segments[1])
    #expect(try problems() == [])
    let name = SegmentName.text(segments[1].startMs)
    for (old, new) in [
      (segments[1].sha256, segments[0].sha256), (#""session":"walk""#, #""session":"other""#), ("{", ""),
    ] {
      try write(segments[1])
      try change(path, old, new)
      #expect(try problems() == [name], "\(old)")
    }
    try write(segments[1])
    // Words without their segment.
    try Data().write(to: URL(fileURLWithPath: session.path + "/segment-0000000000001.text.json"))
    #expect(try problems() == ["segment-0000000000001.text.json"])
  }

  @Test func leftoverOfACrashIsNoProblem() throws {
    _ = try publish()
    try Data("half".utf8).write(to: URL(fileURLWithPath: session.path + "/" + SegmentText.temporary))
    #expect(try problems() == [])
  }

  @Test func retentionRemovesTheWordsOfItsSegments() throws {
    let segments = try publish(0..<40)
    let paths = try segments.map(write)
    let leftover = session.path + "/" + SegmentText.temporary
    try Data("violet".utf8).write(to: URL(fileURLWithPath: leftover))
    try package.dateNewSegments()
    let report = RollingRetention(
      RetentionLimits(ageMs: 20_000, maximumBytes: nil), output: package.output, views: package.views(),
      temporary: { package.output + "/.temporary" }
    ).run(nowMs: GrowingPackage.startMs + 40_000)
    #expect(report.failures.isEmpty && report.segments == 4)
    let left = try Set(session.publishedStarts())
    for (segment, path) in zip(segments, paths) {
      #expect(DurableFile.exists(path) == left.contains(segment.startMs))
    }
    #expect(!DurableFile.exists(leftover))
    #expect(try problems() == [])
  }

  @Test func rollbackRemovesTheWordsOfItsSegments() throws {
    let segments = try publish()
    let paths = try segments.map(write)
    try session.rollBack([segments[2], segments[3]])
    #expect(paths.map(DurableFile.exists) == [true, true, false, false])
  }

  @Test func deletionLeavesNoWord() throws {
    let segments = try publish()
    for segment in segments { try write(segment) }
    try Data("violet".utf8).write(to: URL(fileURLWithPath: session.path + "/" + SegmentText.temporary))
    _ = try SessionTombstones(output: package.output).add(Tombstone(session.session, deletedAtMs: 1, reason: ""))
    let removed = try SessionRemoval(output: package.output, cancellation: .never).remove(session.session)
    #expect(removed.segments == segments.count)
    for (name, file) in try snapshot(of: package.output) {
      #expect(file.bytes.firstRange(of: Data("violet".utf8)) == nil, "\(name)")
    }
  }
}
