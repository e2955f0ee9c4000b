import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import JSON
@testable import Sessions

/// A view without its first segments equals a view that is built from the others.
@Suite struct SlidingViewTests {
  private let session: SessionID

  init() throws { session = try #require(SessionID("walk")) }

  /// Makes segments of several batches, with early and late starts and with gaps inside and between batches.
  private func segments(_ count: Int, _ random: inout Random) -> [PublishedSegment] {
    var now: Int64 = 1_767_859_512_340
    return (0..<count).map { number in
      let lengthMs = random.int(1_000...5_000)
      let gapMs = random.once(in: 3) ? random.int(1...9_000) : 0
      let segment = PublishedSegment.made(
        now, now + lengthMs, batch: "\(number / 3)", gapAfterMs: gapMs, final: number + 1 == count,
        captured: [random.once(in: 2), true], bytes: Int(random.int(1...100_000))
      ).telling(&random)
      now += lengthMs + gapMs + (number % 3 == 2 ? random.int(-90...800) : 0)
      return segment
    }
  }

  private func files(_ segments: some Sequence<PublishedSegment>) throws -> [[UInt8]] {
    try IndexText(#require(SessionIndex(session: session, segments: Array(segments)))).files.map(\.bytes)
  }

  @Test(arguments: 1...40)
  func indexWithoutFirstSegmentsEqualsARebuiltIndex(seed: Int) throws {
    var random = Random(seed: seed)
    let all = segments(Int(random.int(2...30)), &random)
    var (text, begin) = (try files(all), 0)
    // Several removals in a row.
    while begin + 1 < all.count {
      let end = Int(random.int(Int64(begin + 1)...Int64(all.count - 1)))
      let slid = IndexText.removing(
        all[begin..<end].map(\.entry), before: all[end].entry, last: all[all.count - 1].entry, json: text[0],
        script: text[1], of: session)
      text = try #require(slid).files.map(\.bytes)
      let rebuilt = try files(all[end...])
      #expect(text.map { String(decoding: $0, as: UTF8.self) } == rebuilt.map { String(decoding: $0, as: UTF8.self) })
      begin = end
    }
  }

  @Test func otherIndexIsNotSlid() throws {
    var random = Random(seed: 1)
    let all = segments(9, &random)
    let text = try files(all)
    func slid(
      _ removed: ArraySlice<PublishedSegment>, before first: Int, _ json: [UInt8], _ script: [UInt8]
    ) -> IndexText? {
      IndexText.removing(
        removed.map(\.entry), before: all[first].entry, last: all[8].entry, json: json, script: script, of: session)
    }
    #expect(slid(all[..<3], before: 3, text[0], text[1]) != nil)
    #expect(slid(all[1..<3], before: 3, text[0], text[1]) == nil)
    #expect(slid(all[..<3], before: 4, text[0], text[1]) == nil)
    #expect(slid(all[..<3], before: 3, [UInt8](text[0].dropLast()), text[1]) == nil)
    #expect(slid(all[..<3], before: 3, text[0], Array("ffconcat version 1.0\n".utf8)) == nil)
  }

  @Test(arguments: 1...20)
  func thumbnailTrackWithoutFirstSegmentsEqualsARebuiltTrack(seed: Int) throws {
    var random = Random(seed: seed)
    let all = segments(Int(random.int(2...30)), &random)
    let damaged = Set((0..<all.count).filter { _ in random.once(in: 6) })
    func text(from first: Int) -> [UInt8] {
      var track = ThumbnailTrack(startMs: all[first].startMs)
      for index in first..<all.count { track.append(all[index], isShown: !damaged.contains(index)) }
      return track.text
    }
    let first = Int(random.int(1...Int64(all.count - 1)))
    let slid = try #require(
      ThumbnailTrack.removing(before: all[first].startMs, sessionStartMs: all[0].startMs, in: text(from: 0)))
    #expect(String(decoding: slid, as: UTF8.self) == String(decoding: text(from: first), as: UTF8.self))
    #expect(ThumbnailTrack.removing(before: 0, sessionStartMs: 0, in: text(from: 0).dropLast()) == nil)
  }

  // MARK: - Playlists

  private static let layout = HLSLayout(bytes: 100, keyFrame: 10..<30, width: 64, height: 48, codec: "avc1.4D400B")

  private func entry(
    _ fromMs: Int64, _ untilMs: Int64, _ initialization: String = "init-64x48-aaaaaaaa.mp4"
  ) -> HLSPlaylist.Entry {
    let startMs = 1_767_859_512_340 + fromMs
    return HLSPlaylist.Entry(
      file: "segment-\(startMs)-abcdef01.m4s", initialization: initialization, startMs: startMs,
      endMs: 1_767_859_512_340 + untilMs, layout: Self.layout)
  }

  private func playlist(_ entries: [HLSPlaylist.Entry]) -> HLSPlaylist {
    var playlist = HLSPlaylist(of: session, .live, startMs: entries[0].startMs, maximumMs: 5_000)
    for entry in entries { playlist.append(entry) }
    return playlist
  }

  @Test func slidingPlaylistCountsItsEntriesAndDiscontinuities() throws {
    let other = "init-48x64-bbbbbbbb.mp4"
    let entries = [
      entry(0, 5_000), entry(5_000, 10_000), entry(22_500, 25_000), entry(25_000, 30_000, other),
      entry(30_000, 35_000, other),
    ]
    let text = Array(playlist(entries).text.utf8)
    #expect(HLSPlaylist.sliding(text, to: entries[0].startMs) == nil)
    func slid(_ text: [UInt8], to number: Int) throws -> String {
      String(decoding: try #require(HLSPlaylist.sliding(text, to: entries[number].startMs)).text, as: UTF8.self)
    }
    let head = """
      #EXTM3U
      # session walk
      #EXT-X-VERSION:8
      #EXT-X-INDEPENDENT-SEGMENTS
      #EXT-X-TARGETDURATION:6

      """
    let last = """
      #EXT-X-PROGRAM-DATE-TIME:2026-01-08T08:05:42.340Z
      # fragment 100 20@10 64x48 avc1.4D400B
      #EXTINF:5.000,
      segment-1767859542340-abcdef01.m4s

      """
    let map = "#EXT-X-MAP:URI=\"init-64x48-aaaaaaaa.mp4\"\n"
    #expect(try slid(text, to: 1).hasPrefix(head + "#EXT-X-MEDIA-SEQUENCE:1\n" + map))
    // Two segments and three entries of the gap.
    let third = try slid(text, to: 2)
    #expect(third.hasPrefix(head + "#EXT-X-MEDIA-SEQUENCE:5\n" + map))
    #expect(!third.contains("gap.m4s") && third.contains("#EXT-X-DISCONTINUITY\n"))
    let sequences = "#EXT-X-MEDIA-SEQUENCE:7\n#EXT-X-DISCONTINUITY-SEQUENCE:1\n"
    let fifth = head + sequences + "#EXT-X-MAP:URI=\"\(other)\"\n" + last
    #expect(try slid(text, to: 4) == fifth)
    // In two steps, and in each order, it is the same.
    #expect(try slid(Array(third.utf8), to: 4) == fifth)
    #expect(HLSPlaylist.sequence(behind: text) == HLSPlaylist.Sequence(media: 8, discontinuity: 1))
    #expect(HLSPlaylist.sequence(behind: Array(fifth.utf8)) == HLSPlaylist.Sequence(media: 8, discontinuity: 1))
    // It continues like any other.
    var continued = try #require(HLSPlaylist(of: session, continuing: Array(fifth.utf8)))
    continued.append(entry(35_000, 40_000, other))
    #expect(continued.text.hasPrefix(fifth))
    // Files that are only named by the removed entries, and the initialization that the rest names, too.
    let removed = try #require(HLSPlaylist.sliding(text, to: entries[2].startMs)).files
    #expect(removed == ["gap.m4s", "init-64x48-aaaaaaaa.mp4", entries[0].file, entries[1].file])
  }

  /// A type would be another change than the end (RFC 8216, 6.2.1).
  @Test func endedWindowHasNoType() throws {
    var ended = playlist([entry(0, 5_000), entry(5_000, 10_000)])
    ended.end(atMs: ended.endMs)
    let slid = try #require(HLSPlaylist.sliding(Array(ended.text.utf8), to: 1_767_859_512_340 + 5_000))
    let text = String(decoding: slid.text, as: UTF8.self)
    #expect(
      text.contains("#EXT-X-MEDIA-SEQUENCE:1\n") && !text.contains("PLAYLIST-TYPE")
        && text.hasSuffix("#EXT-X-ENDLIST\n"))
    #expect(HLSPlaylist.starts(in: slid.text) == [1_767_859_517_340] && HLSPlaylist.hasEnded(slid.text))
    let none = try #require(HLSPlaylist.sliding(Array(ended.text.utf8), to: .max))
    #expect(!none.hasSegments)
  }

  /// Returns the numbers of a playlist's entries.
  private func numbers(_ entries: [HLSPlaylist.Entry], replacing replaced: [HLSPlaylist.Entry]) -> (Int64, [String]) {
    let there = Array(playlist(replaced).text.utf8)
    var next = playlist(entries)
    next.keepNumbers(of: there)
    let text = Array(next.text.utf8)
    #expect(next.text.contains("#EXT-X-PLAYLIST-TYPE:EVENT\n"))
    return (
      HLSPlaylist.sequence(of: text).media,
      next.text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map(String.init)
    )
  }

  @Test func numbersThatPlayersHaveSeenNameNoOtherEntry() throws {
    let all = [entry(0, 5_000), entry(5_000, 10_000), entry(10_000, 15_000)]
    // A longer playlist goes on, and so does one with another fragment in the same place.
    #expect(numbers(all, replacing: Array(all[..<2])).0 == 0)
    #expect(numbers([all[0], entry(5_000, 9_000)], replacing: Array(all[..<2])).0 == 0)
    // A late segment before all others, between two of them, in the place of a gap, and one in another place than all.
    #expect(numbers(all, replacing: Array(all[1...])).0 == 2)
    #expect(numbers(all, replacing: [all[0], all[2]]).0 == 3)
    #expect(numbers([all[1]], replacing: [all[0]]).0 == 1)
  }
}
