import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import JSON
@testable import SegmentEncoder
@testable import Sessions

/// The chapters in a playlist that grows: once written they stay, and they follow from the manifests.
@Suite struct PlaylistChapterTests {
  static let start: Int64 = 1_767_859_512_340
  let session: SessionID

  init() throws { session = try #require(SessionID("walk")) }

  @Test func chaptersAreBeforeTheirSegments() throws {
    let text = try playlist([
      part(0, 5_000, pages: [0], notes: [1_000], presses: [4_000, 4_500]),
      part(5_000, 9_000, gapAfterMs: 1_000, presses: [2_000, 3_900]), part(10_000, 15_000, presses: [3_900]),
    ])
    let body = try #require(text.range(of: "#EXT-X-DATERANGE")).lowerBound
    let lines = text[body...].split(separator: "\n").filter { !$0.hasPrefix("# fragment") }
    #expect(
      lines.joined(separator: "\n") == """
        #EXT-X-DATERANGE:ID="navigation-1767859512340",CLASS="segment-encoder.navigation",START-DATE="2026-01-08T08:05:12.340Z",X-TITLE="page 0"
        #EXT-X-DATERANGE:ID="note-1767859513340",CLASS="segment-encoder.note",START-DATE="2026-01-08T08:05:13.340Z",X-TITLE="note 1000"
        #EXT-X-DATERANGE:ID="pointer-1767859516340",CLASS="segment-encoder.pointer",START-DATE="2026-01-08T08:05:16.340Z",X-TITLE="press at 4000, 1"
        # note note 1000
        # press 1767859516840
        #EXT-X-PROGRAM-DATE-TIME:2026-01-08T08:05:12.340Z
        #EXTINF:5.000,
        segment-1767859512340-abcdef01.m4s
        # note\u{20}
        # press 1767859521240
        #EXT-X-PROGRAM-DATE-TIME:2026-01-08T08:05:17.340Z
        #EXTINF:4.000,
        segment-1767859517340-abcdef01.m4s
        #EXT-X-PROGRAM-DATE-TIME:2026-01-08T08:05:21.340Z
        #EXT-X-GAP
        #EXTINF:1.000,
        gap.m4s
        #EXT-X-DATERANGE:ID="gap-1767859521340-1767859522340",CLASS="segment-encoder.gap",START-DATE="2026-01-08T08:05:21.340Z",DURATION=1.000,X-TITLE="gap of 1 s"
        #EXT-X-DATERANGE:ID="pointer-1767859526240",CLASS="segment-encoder.pointer",START-DATE="2026-01-08T08:05:26.240Z",X-TITLE="press at 3900, 1"
        # press 1767859526240
        #EXT-X-PROGRAM-DATE-TIME:2026-01-08T08:05:22.340Z
        #EXTINF:5.000,
        segment-1767859522340-abcdef01.m4s
        """)
  }

  /// Makes parts with gaps, some of more than an hour, and with events.
  private func parts(_ count: Int, _ random: inout Random) throws -> [Part] {
    var now: Int64 = 0
    return try (0..<count).map { _ in
      let lengthMs = random.int(1_000...5_000)
      let gapMs = random.once(in: 3) ? random.int(500...9_000) : random.once(in: 9) ? 4_000_000 : 0
      defer { now += lengthMs + gapMs }
      func instants() -> [Int64] { (0..<random.int(0...3)).map { _ in random.int(0...lengthMs - 1) }.sorted() }
      return try part(
        now, now + lengthMs, gapAfterMs: gapMs, pages: instants(), notes: instants(), presses: instants())
    }
  }

  @Test(arguments: 1...40)
  func extendedPlaylistEqualsOneThatIsMadeAtOnce(seed: Int) throws {
    var random = Random(seed: seed)
    let all = try parts(Int(random.int(2...30)), &random)
    let text = try playlist(all)
    #expect(try playlist(all, isReread: true) == text)
    let ids = ranges(text).compactMap { $0.firstMatch(of: #/ID="([^"]*)"/#)?.1 }
    #expect(Set(ids).count == ids.count)
    // The chapters of a film of the whole session, by the same function.
    var note: String?
    let marks = all.flatMap { part -> [FilmChapter] in
      defer { note = part.marks.lastNote }
      return part.marks.chapters(afterPressMs: nil, note: note)
    }.filter { $0.kind != .pointer }
    #expect(ids.count { !$0.hasPrefix("gap-") && !$0.hasPrefix("pointer-") } == marks.count)
  }

  /// The last press before the window does not count in a playlist that is made anew.
  @Test(arguments: 1...40)
  func slidPlaylistHasTheChaptersOfItsSegments(seed: Int) throws {
    var random = Random(seed: seed)
    let all = try parts(Int(random.int(2...30)), &random)
    let first = Int(random.int(1...Int64(all.count - 1)))
    let text = Array(try playlist(all).utf8)
    let slid = try #require(HLSPlaylist.sliding(text, to: all[first].segment.startMs))
    let (found, rebuilt) = (
      ranges(String(decoding: slid.text, as: UTF8.self)), ranges(try playlist(Array(all[first...])))
    )
    #expect(rebuilt.filter { !found.contains($0) }.count <= 1)
    #expect(found == rebuilt.filter(found.contains))
    #expect(found.count >= rebuilt.count - 1)
  }

  /// The segment behind a seam may have chapters at the same instants.
  @Test func everyIdentityIsThereOnce() throws {
    let text = try playlist([
      part(0, 5_000, pages: [100, 100, 4_950], notes: [100]), part(4_900, 9_000, pages: [50]),
    ])
    let ids = ranges(text).compactMap { $0.firstMatch(of: #/ID="([^"]*)"/#).map { String($0.1) } }
    #expect(
      ids == [
        "navigation-1767859512440", "navigation-1767859512440-2", "note-1767859512440",
        "navigation-1767859517290-1767859512340", "navigation-1767859517290",
      ])
  }

  @Test func numberOfChaptersOfASegmentHasALimit() throws {
    let many = (0..<100).map { Int64($0) * 10 }
    let (found, pages) = (
      try part(0, 5_000, pages: many, notes: many, presses: many).marks.chapters(afterPressMs: nil),
      try part(0, 5_000, pages: [1], notes: many, presses: [0]).marks.chapters(afterPressMs: nil)
    )
    #expect(found.count == SegmentMarks.maximumChapters && found.allSatisfy { $0.kind == .navigation })
    #expect(pages.count == SegmentMarks.maximumChapters && pages.count { $0.kind == .navigation } == 1)
  }

  // MARK: - Notes that last

  /// - Parameter notes: of each frame, one a second.
  private func noted(_ fromMs: Int64, _ notes: [String?], press: Int64) throws -> Part {
    let segment = PublishedSegment.made(
      Self.start + fromMs, Self.start + fromMs + 1_000 * Int64(notes.count), batch: "\(fromMs)")
    let frames = notes.enumerated().map { index, note in
      let member = note.map { #","note":"\#($0)""# } ?? ""
      return #"{"timeMs":\#(segment.startMs + 1_000 * Int64(index))\#(member)}"#
    }
    let manifest = """
      {"frames":[\(frames.joined(separator: ","))],
       "touches":{"width":64,"height":48,"events":[[\(press),"down",0,1,1]]}}
      """
    return (segment, SegmentMarks(try JSONParser.parse(Array(manifest.utf8)), of: segment))
  }

  private func titles(_ text: String) -> [String] {
    ranges(text).compactMap { $0.firstMatch(of: #/X-TITLE="([^"]*)"/#).map { String($0.1) } }
  }

  @Test func noteOfEveryFrameIsThereOnce() throws {
    let all = try (0..<3).map {
      try noted(20_000 * Int64($0), Array(repeating: "HDR", count: 20), press: 19_000)
    }
    let text = try playlist(all)
    #expect(titles(text) == ["HDR"] + Array(repeating: "press at 1, 1", count: 3))
    #expect(try playlist(all, isReread: true) == text)
  }

  @Test func noteThatComesBackIsAnotherChapter() throws {
    let all = try [
      noted(0, ["a", "a", nil, "a", "b"], press: 0), noted(5_000, ["b", "a", nil], press: 0),
      noted(8_000, [nil, "a"], press: 0), noted(10_000, [nil], press: 0), noted(11_000, ["a"], press: 0),
    ]
    let text = try playlist(all)
    #expect(titles(text).filter { !$0.hasPrefix("press") } == ["a", "a", "b", "a", "a", "a"])
    #expect(try playlist(all, isReread: true) == text)
  }

  /// The picture of the first frame was captured before the segment.
  @Test func continuedNoteIsNoChapter() throws {
    let segment = PublishedSegment.made(Self.start, Self.start + 3_000)
    let frames = [(-9_000, "a"), (1_000, "b"), (2_000, "a")].map {
      #"{"timeMs":\#(Self.start + Int64($0.0)),"note":"\#($0.1)"}"#
    }
    let json = try JSONParser.parse(Array(#"{"frames":[\#(frames.joined(separator: ","))]}"#.utf8))
    let marks = SegmentMarks(json, of: segment)
    #expect(marks.chapters(afterPressMs: nil, note: "a").map(\.title) == ["b", "a"])
    #expect(marks.chapters(afterPressMs: nil).map(\.title) == ["b", "a"])
  }

  // MARK: - Hostile texts

  @Test(arguments: ["-9223372036854775808", "9223372036854775807", "8796093022209", "-1", "x"])
  func pressOutOfRangeIsNotRead(value: String) throws {
    let parts = [try part(0, 5_000, presses: [100]), try part(5_000, 9_000, presses: [3_000])]
    let text = try playlist([parts[0]])
    let changed = text.replacing("# press \(Self.start + 100)", with: "# press \(value)")
    #expect(changed != text)
    var playlist = try #require(HLSPlaylist(of: session, continuing: Array(changed.utf8)))
    playlist.append(entry(parts[1].segment, before: nil), parts[1].marks)
    // No press is known before it.
    #expect(titles(playlist.text).count { $0.hasPrefix("press") } == 2)
  }

  @Test func quoteWithACombiningMarkDoesNotEndTheString() throws {
    let title = "a\"\u{301},X-EVIL=\"b\r\nc\u{2028}d\u{85}e\u{301}"
    let text = [FilmChapter(kind: .note, unixMs: Self.start, title: title)].dateRanges()
    #expect(text.hasSuffix(",X-TITLE=\"a'\u{301},X-EVIL='b  c d e\u{301}\"\n"))
    #expect(text.utf8.count { $0 == UInt8(ascii: "\"") } == 8)
    #expect(text.utf8.count { $0 == UInt8(ascii: "\n") } == 1)
  }

  @Test func layoutOfAnImpossibleSizeIsNotRead() throws {
    let text = try playlist([part(0, 5_000)])
    #expect(HLSPlaylist(of: session, continuing: Array(text.utf8)) != nil)
    let changed = text.replacing("# fragment 100 ", with: "# fragment 9000000000000 ")
    #expect(changed != text && HLSPlaylist(of: session, continuing: Array(changed.utf8)) == nil)
  }

  // MARK: - In packages

  /// A rebuilt playlist needs each manifest once.
  @Test func rebuildReadsManifestsOnce() throws {
    let package = try GrowingPackage()
    let views = package.views()
    for second in [0, 20, 40] { try package.publish(second..<second + 5, views) }
    let directory = SessionDirectory(output: package.output, session: session)
    let text = try directory.bytes(of: "hls/session.m3u8", limit: 1 << 20)
    try FileManager.default.removeItem(atPath: directory.path + "/hls")
    let manifests = try names(in: directory.path).filter { $0.hasPrefix("segment-") && $0.hasSuffix(".json") }
    let update = ViewUpdate(
      directory: directory, releasedMs: .max, temporary: package.output + "/part", nowMs: package.unixMs
    ) { _, _ in
      for name in manifests { try? FileManager.default.removeItem(atPath: directory.path + "/" + name) }
    }
    _ = try update.rebuild(.hls)
    #expect(try directory.bytes(of: "hls/session.m3u8", limit: 1 << 20) == text)
  }

  /// A batch that comes again under another name finds the objects of a worker that died before it listed them.
  @Test func chaptersOfAnAdoptedSegmentAreThoseOfTheStore() throws {
    let package = try GrowingPackage()
    let batch = try batch(0, presses: [2_000], in: package)
    _ = try package.encoder(try package.store()).publish(batch)
    let key = "output/walk/" + SegmentName.manifest(GrowingPackage.startMs)
    let manifest = try JSONParser.parse(try #require(package.objects[key]))
    // That worker wrote another place of the press.
    let events = try JSONParser.parse(Array(#"[[2000,"down",0,7,7]]"#.utf8))
    let touches = try #require(manifest.object?["touches"]).setting(["events": events])
    let other = SegmentManifest.text(of: manifest.setting(["batch": .string("other"), "touches": touches]))
    let videos = package.objects.keys.filter { $0.hasSuffix(".mp4") && !$0.contains("/hls/") }
    let bytes = try videos.map { try #require(package.objects[$0]) }
    let again = try GrowingPackage()
    for (video, bytes) in zip(videos, bytes) { _ = try again.objects.put(video, .bytes(bytes), .video, when: .absent) }
    _ = try again.objects.put(key, .bytes(other), .json, when: .absent)
    let store = try again.store()
    _ = try again.encoder(store).publish(batch)
    #expect(store.flushPending(all: true).isEmpty)
    let text = String(decoding: try #require(again.objects["output/walk/hls/session.m3u8"]), as: UTF8.self)
    #expect(titles(text) == ["press at 7, 7"])
  }

  /// Makes a batch of five seconds with presses.
  private func batch(_ second: Int, presses: [Int64], in package: GrowingPackage) throws -> String {
    let path = try package.batch(second..<second + 5)
    let events = presses.map {
      #"{"timeMs":\#(GrowingPackage.startMs + $0),"type":"down","x":\#($0 / 1_000),"y":2}"#
    }
    let json = #"{"version":1,"session":"walk","events":[\#(events.joined(separator: ","))]}"#
    try Data(json.utf8).write(to: URL(fileURLWithPath: path + "/batch.json"))
    return path
  }

  @Test func everyWayToAPlaylistGivesTheSameChapters() throws {
    let package = try GrowingPackage()
    let batches = [
      try batch(0, presses: [2_000, 4_900], in: package), try batch(5, presses: [6_000], in: package),
      try batch(20, presses: [21_500], in: package),
    ]
    let (views, store) = (package.views(), try package.store())
    let file = package.output + "/walk/hls/session.m3u8"
    var seen = ""
    for batch in batches {
      let staging = try package.staging()
      _ = try BatchEncoder(BatchEncoder.Options(), staging: staging, index: views).publish(batch)
      #expect(views.flushPending(staging, all: true).isEmpty)
      staging.remove()
      _ = try package.encoder(store).publish(batch)
      #expect(store.flushPending(all: true).isEmpty)
      let text = try String(contentsOfFile: file, encoding: .utf8)
      #expect(text.hasPrefix(seen))
      seen = text
    }
    let titles = ranges(seen).compactMap { $0.firstMatch(of: #/X-TITLE="([^"]*)"/#).map { String($0.1) } }
    #expect(titles == ["press at 2, 2", "gap of 10 s", "press at 21, 2"])
    #expect(package.objects["output/walk/hls/session.m3u8"].map { String(decoding: $0, as: UTF8.self) } == seen)
    // Made anew from all manifests.
    try FileManager.default.removeItem(atPath: package.output + "/walk/hls")
    let directory = SessionDirectory(output: package.output, session: session)
    _ = try package.views().update(directory, releasedMs: .max, temporary: package.output + "/.temporary")
    #expect(try String(contentsOfFile: file, encoding: .utf8) == seen)
    #expect(try Conformance.faults(ofPlaylistsIn: package.output + "/walk/hls") == [])
  }
}
