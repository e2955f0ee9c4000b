import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import JSON
@testable import Sessions

/// An extended view equals a view that is built from scratch.
@Suite struct SessionViewTests {
  private let session: SessionID

  init() throws { session = try #require(SessionID("walk")) }

  /// Makes segments of several batches, with early and late starts and with gaps inside and between batches.
  private func segments(_ count: Int, _ random: inout Random) -> [PublishedSegment] {
    var now: Int64 = 1_767_859_512_340
    return (0..<count).map { number in
      let lengthMs = random.int(100...5_000)
      let gapMs = random.once(in: 4) ? random.int(1...9_000) : 0
      let segment = PublishedSegment.made(
        now, now + lengthMs, batch: "\(number / 3)", gapAfterMs: gapMs, final: number + 1 == count,
        captured: [random.once(in: 2), true], bytes: Int(random.int(1...100_000))
      ).telling(&random)
      now += lengthMs + gapMs + (number % 3 == 2 ? random.int(-90...800) : 0)
      return segment
    }
  }

  private func made(_ segments: [PublishedSegment]) -> IndexText? {
    SessionIndex(session: session, segments: segments).map { IndexText($0) }
  }

  private func text(_ view: IndexText?) -> [String] {
    view?.files.map { String(decoding: $0.bytes, as: UTF8.self) } ?? []
  }

  @Test(arguments: 1...20)
  func extendedViewEqualsARebuiltView(seed: Int) throws {
    var random = Random(seed: seed)
    let all = segments(Int(random.int(2...30)), &random)
    let split = Int(random.int(1...Int64(all.count - 1)))
    let before = try #require(made(Array(all[..<split])))
    let files = before.files
    let entries = Dictionary(uniqueKeysWithValues: all.map { ($0.startMs, $0.entry) })
    func extended(_ files: [(name: String, bytes: [UInt8])], to starts: ArraySlice<Int64>) throws -> IndexText? {
      try IndexText.extending(json: files[0].bytes, script: files[1].bytes, of: session, to: Array(starts)) {
        try #require(entries[$0])
      }?.view
    }
    let starts = all.map(\.startMs)
    let whole = try #require(made(all))
    #expect(try text(extended(files, to: starts[(split - 1)...])) == text(whole))
    // The same in reverse: segments are removed again. Without a final one the session may go on again, so all are needed.
    let removed = try extended(whole.files, to: starts[..<split])
    #expect((removed == nil) == all[split...].contains { $0.isFinal })
    if let removed { #expect(text(removed) == text(before)) }
    // A missing segment is inserted between the others.
    let rest = all.enumerated().filter { $0.offset != split }.map(\.element)
    let inserted = try extended(try #require(made(rest)).files, to: starts[...])
    #expect((inserted == nil) == rest[split...].contains { $0.isFinal })
    if let inserted { #expect(text(inserted) == text(whole)) }
  }

  @Test func editedViewIsNotExtended() throws {
    var random = Random(seed: 1)
    let all = segments(9, &random)
    let files = try #require(made(all)).files
    func view(
      _ json: [UInt8], _ script: [UInt8], last: PublishedSegment? = nil, of session: SessionID? = nil
    ) -> IndexText? {
      let last = last ?? all[8]
      return IndexText.extending(
        json: json, script: script, of: session ?? self.session, to: [last.startMs], { _ in last.entry })?.view
    }
    #expect(view(files[0].bytes, files[1].bytes) != nil)
    #expect(view(files[0].bytes, files[1].bytes, last: all[7]) == nil)
    #expect(view(files[0].bytes, [UInt8](files[1].bytes.dropLast())) == nil)
    #expect(view([UInt8](files[0].bytes.dropLast()), files[1].bytes) == nil)
    #expect(view([UInt8](files[0].bytes.dropFirst()), files[1].bytes) == nil)
    #expect(view(Array("{}\n".utf8), files[1].bytes) == nil)
    #expect(view([], []) == nil)
    let other = try #require(SessionID("other"))
    #expect(view(files[0].bytes, files[1].bytes, of: other) == nil)
  }

  @Test(arguments: 1...20)
  func theViewIsReadableJSON(seed: Int) throws {
    var random = Random(seed: seed)
    let all = segments(7, &random)
    let file = try #require(made(all)).files[0]
    let json = try JSONParser.parse(file.bytes)
    let gaps = json.object?["gaps"]?.array?.map { [$0.object?["startMs"]?.integer, $0.object?["endMs"]?.integer] }
    let wanted = SessionIndex(session: session, segments: all)
    #expect(gaps == wanted?.gaps.map { [$0.startMs, $0.endMs] })
    #expect(
      json.object?["durationMs"]?.integer == wanted?.durationMs && json.object?["endMs"]?.integer == wanted?.endMs)
    #expect(json.line + "\n" == String(decoding: file.bytes, as: UTF8.self))
    let manifest = try #require(SessionIndex(session: session, segments: all))
    let members = try #require(json.object)
    #expect(members["frames"]?.integer == Int64(manifest.frames) && members["bytes"]?.integer == Int64(manifest.bytes))
    #expect(members["gaps"]?.array?.count == manifest.gaps.count)
    #expect(members["segments"]?.array?.count == 7)
    #expect(members["complete"]?.bool == true)
    #expect(members["health"].map { HealthSummary.withoutSums($0) } == manifest.health?.json)
    // As the head of a store keeps it. Entries of another length are refused.
    let head = JSONValue.object(manifest.members)
    #expect(
      try SessionIndex(head, of: session).listing([]) == manifest.listing([])
        && head == JSONValue.object(SessionIndex(head, of: session).members))
    #expect(try SessionIndex(head, of: session).entries == manifest.entries)
  }

  /// Earlier versions read entries of 12, 13 or 21 items: a segment without faults and labels has no others.
  @Test func soundSegmentHasAnEntryOfEarlierVersions() throws {
    var segment = PublishedSegment.made(1_767_859_512_340, 1_767_859_517_340, batch: "0123456789abcdef0")
    #expect(segment.entry.json.array?.count == 12 && segment.entry.json.array?[10].string == "0123456789abcdef")
    segment.health = SegmentHealth(intervalMs: 1_000, HealthFigures())
    #expect(segment.entry.json.array?.count == 12 && segment.entry.json.array?[10].string == "0123456789abcdef~1000")
    segment.health?.figures.missing = 2
    #expect(segment.entry.json.array?.count == 14)
    #expect(try SessionEntry.all([segment.entry.json]) == [segment.entry])
    let other = JSONValue.array(
      (segment.entry.json.array ?? []).map { $0.string == "0123456789abcdef~1000" ? .string("a~b") : $0 })
    #expect(throws: JSONError.self) { try SessionEntry.all([other]) }
  }

  /// Captures that would fit into a gap between two batches are missing, too.
  @Test func capturesMissingBetweenBatchesAreCounted() throws {
    func segment(_ startMs: Int64, _ batch: String) -> PublishedSegment {
      var segment = PublishedSegment.made(
        startMs, startMs + 5_000, batch: batch, captured: [true, true, true, true, true])
      segment.health = SegmentHealth(intervalMs: 1_000, HealthFigures())
      return segment
    }
    let all = [segment(0, "a"), segment(7_000, "b"), segment(12_300, "c"), segment(60_000, "d")]
    let health = try #require(SessionIndex(session: session, segments: all)?.health)
    #expect(health.missing == 2 && health.sentence == "20 captures, 2 missing")
    #expect(health.json.object?["longestPauseMs"]?.integer == 44_000)
    #expect(health.json.object?["expected"]?.integer == 22)
    #expect(health.json.object?["recordedPermille"]?.integer == 312)
  }
}

/// The cache in a directory is valid until the directory changes.
@Suite struct SessionNoteTests {
  private let note = SessionIndexCache(
    count: 12, recent: [3, 5, 8], behind: [8], views: [.hls, .thumbnails])

  private func directory() throws -> ScratchDirectory {
    let scratch = try ScratchDirectory()
    for name in [IndexText.jsonFile, IndexText.scriptFile] { _ = try scratch.file(name, Array(name.utf8)) }
    return scratch
  }

  @Test(.enabled(if: ScratchDirectory.keepsAttributes))
  func cacheIsValidUntilTheDirectoryChanges() throws {
    let scratch = try directory()
    let path = scratch.path("")
    #expect(SessionIndexCache.read(of: path) == nil)
    let changes: [(String) throws -> Void] = [
      { try Data().write(to: URL(fileURLWithPath: $0 + "/segment-0000000000009.mp4")) },
      { unlink($0 + "/segment-0000000000009.mp4") },
      { rename($0 + "/session.json", $0 + "/other.json") },
      { rename($0 + "/other.json", $0 + "/session.json") },
      { try Data("edited".utf8).write(to: URL(fileURLWithPath: $0 + "/session.ffconcat")) },
      {
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: $0 + "/session.json"))
        try file.write(contentsOf: Data("edited in place".utf8))
      },
    ]
    for change in changes {
      // The change follows immediately, so it may fall into the same clock tick. The cache must still detect it.
      note.write(to: path)
      try change(path)
      #expect(SessionIndexCache.read(of: path) == nil)
    }
    note.write(to: path)
    #expect(SessionIndexCache.read(of: path) == note)
    #expect(SessionIndexCache.read(of: path) == note)
  }

  @Test func shortSessionHasNoCache() throws {
    let scratch = try directory()
    var short = note
    short.count = SessionIndexCache.leastCount - 1
    short.write(to: scratch.path(""))
    #expect(SessionIndexCache.read(of: scratch.path("")) == nil)
  }

  /// Invalid data is refused even if the stamp is correct.
  @Test(.enabled(if: ScratchDirectory.keepsAttributes))
  func invalidCacheIsIgnored() throws {
    let scratch = try directory()
    note.write(to: scratch.path(""))
    let right = scratch.attribute("user.segment-encoder")
    #expect(right.count == 9 && SessionIndexCache.read(of: scratch.path("")) == note)
    for (place, word): (Int, Int64) in [(4, 0), (4, -1), (4, 5), (4, .max), (4, .min), (0, 1), (1, 0)] {
      var wrong = right
      wrong[place] = word
      scratch.setAttribute("user.segment-encoder", wrong)
      #expect(SessionIndexCache.read(of: scratch.path("")) == nil, "\(place): \(word)")
    }
    for count in 0...6 {
      scratch.setAttribute("user.segment-encoder", Array(right.prefix(count)))
      #expect(SessionIndexCache.read(of: scratch.path("")) == nil, "\(count) words")
    }
    for words: [Int64] in [[], [2], [2, 0, 9, 0, 1, 5], [Int64](repeating: -1, count: 9)] {
      scratch.setAttribute("user.segment-encoder", words)
      #expect(SessionIndexCache.read(of: scratch.path("")) == nil)
    }
  }
}
