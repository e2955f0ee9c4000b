import Foundation
import Testing

@testable import Encoding
@testable import FrameBatches
@testable import Sessions

@Suite struct HLSPlaylistTests {
  private let start: Int64 = 1_767_859_512_340

  private typealias Media = (file: String, initialization: String, layout: HLSLayout?)

  private func media(_ number: Int, _ initialization: String = "init-a.mp4") -> Media {
    ("\(number).m4s", initialization, nil)
  }

  private func entry(_ media: Media, _ fromMs: Int64, _ untilMs: Int64) -> HLSPlaylist.Entry {
    HLSPlaylist.Entry(
      file: media.file, initialization: media.initialization, startMs: start + fromMs, endMs: start + untilMs,
      layout: media.layout)
  }

  /// Returns the playlist of segments, each with its start and end on screen in milliseconds from the session's start.
  private func playlist(
    _ segments: [(media: Media, fromMs: Int64, untilMs: Int64)], _ kind: HLSPlaylist.Kind = .complete
  ) throws -> HLSPlaylist {
    var playlist = HLSPlaylist(
      of: try #require(SessionID("walk")), kind, startMs: start,
      maximumMs: segments.map { $0.untilMs - $0.fromMs }.max() ?? 0)
    for segment in segments {
      playlist.append(entry(segment.media, segment.fromMs, segment.untilMs))
    }
    return playlist
  }

  @Test func segmentsGapsAndSizesAreListed() throws {
    let segments: [(Media, Int64, Int64)] = [
      (media(1), 0, 5_000), (media(2), 17_345, 18_045), (media(3, "init-b.mp4"), 18_045, 23_046),
    ]
    let expected = """
      #EXTM3U
      # session walk
      #EXT-X-VERSION:8
      #EXT-X-INDEPENDENT-SEGMENTS
      #EXT-X-TARGETDURATION:6
      #EXT-X-PLAYLIST-TYPE:VOD
      #EXT-X-MAP:URI="init-a.mp4"
      #EXT-X-PROGRAM-DATE-TIME:2026-01-08T08:05:12.340Z
      #EXTINF:5.000,
      1.m4s
      #EXT-X-PROGRAM-DATE-TIME:2026-01-08T08:05:17.340Z
      #EXT-X-GAP
      #EXTINF:6.000,
      gap.m4s
      #EXT-X-GAP
      #EXTINF:6.000,
      gap.m4s
      #EXT-X-GAP
      #EXTINF:0.345,
      gap.m4s
      #EXT-X-PROGRAM-DATE-TIME:2026-01-08T08:05:29.685Z
      #EXTINF:0.700,
      2.m4s
      #EXT-X-DISCONTINUITY
      #EXT-X-MAP:URI="init-b.mp4"
      #EXT-X-PROGRAM-DATE-TIME:2026-01-08T08:05:30.385Z
      #EXTINF:5.001,
      3.m4s
      #EXT-X-ENDLIST

      """
    var playlist = try playlist(segments)
    playlist.end(atMs: start + 23_046)
    #expect(playlist.text == expected)
    let live = expected.replacingOccurrences(of: "VOD", with: "EVENT")
    #expect(try self.playlist(segments, .live).text == live.replacingOccurrences(of: "#EXT-X-ENDLIST\n", with: ""))
    #expect(HLSPlaylist.session(of: Array(expected.utf8)) == "walk")
    #expect(HLSPlaylist.session(of: Array("#EXTM3U\n1.ts\n".utf8)) == nil)
    #expect(HLSPlaylist.starts(in: Array("#EXTM3U\nsegment-1767859512340-90c15cef.m4s\ngap.m4s\n".utf8)) == [start])
  }

  /// A single wrong clock must not make a playlist of a million lines.
  @Test func gapAboveOneHourIsADiscontinuity() throws {
    let hour: Int64 = 3_600_000
    func text(_ gapMs: Int64) throws -> String {
      try playlist([(media(1), 0, 5_000), (media(2), 5_000 + gapMs, 10_000 + gapMs)]).text
    }
    let laidOut = try text(hour)
    #expect(laidOut.components(separatedBy: "gap.m4s").count - 1 == 600)
    #expect(!laidOut.contains("DISCONTINUITY"))
    let jumped = try text(hour + 1)
    #expect(!jumped.contains("gap.m4s"))
    #expect(
      jumped.contains("1.m4s\n#EXT-X-DISCONTINUITY\n#EXT-X-PROGRAM-DATE-TIME:2026-01-08T09:05:17.341Z\n"))
  }

  @Test func aSegmentLongerThanUsualRaisesTheTarget() throws {
    #expect(try playlist([(media(1), 0, 10_001)]).text.contains("TARGETDURATION:11\n"))
  }

  /// RFC 8216, 4.3.3.1: the target is compared with rounded durations.
  @Test func anEntryMayExceedTheTargetByLessThanHalfASecond() throws {
    let playlist = try playlist([(media(1), 0, 5_000)], .live)
    #expect(playlist.hasRoom(for: entry(media(2), 5_000, 11_499)))
    #expect(!playlist.hasRoom(for: entry(media(2), 5_000, 11_500)))
  }

  /// Appends segments as the live worker does, and reads the playlist back after each.
  @Test func livePlaylistReadBackContinuesAtItsEnd() throws {
    let session = try #require(SessionID("walk"))
    func media(_ startMs: Int64) -> Media {
      let layout = HLSLayout(bytes: 100, keyFrame: 10..<30, width: 64, height: 48, codec: "avc1.4D400B")
      return ("segment-\(startMs)-x.m4s", "init-a.mp4", layout)
    }
    var playlist = try playlist([(media(start), 0, 5_000)], .live)
    // Late, early and late again. The sum of the durations equals the instants in each case.
    for (fromMs, untilMs) in [(5_300, 10_000), (9_800, 14_000), (14_050, 15_000)] as [(Int64, Int64)] {
      var continued = try #require(HLSPlaylist(of: session, continuing: Array(playlist.text.utf8)))
      #expect(continued.endMs == playlist.endMs && continued.maximumMs == playlist.maximumMs)
      let entry = entry(media(start + fromMs), fromMs, untilMs)
      #expect(continued.hasRoom(for: entry))
      continued.append(entry)
      #expect(continued.text.hasPrefix(playlist.text))
      playlist = continued
    }
    let durations = playlist.text.matches(of: /#EXTINF:(\d+)\.(\d{3}),/).compactMap { Int64($0.1 + $0.2) }
    #expect(durations == [5_000, 300, 4_700, 4_000, 50, 950])
    #expect(playlist.endMs == start + 15_000)
    let early = entry(media(start + 14_500), 14_500, 15_000)
    #expect(!playlist.hasRoom(for: early))
    let long = entry(media(start + 15_000), 15_000, 25_001)
    #expect(!playlist.hasRoom(for: long))
    // A playlist of another session, an ended one, and one of an older version without layouts.
    #expect(HLSPlaylist(of: try #require(SessionID("other")), continuing: Array(playlist.text.utf8)) == nil)
    var ended = playlist
    ended.end(atMs: playlist.endMs)
    #expect(HLSPlaylist(of: session, continuing: Array(ended.text.utf8)) == nil)
    let older = playlist.text.split(separator: "\n").filter { !$0.hasPrefix("# fragment") }.joined(separator: "\n")
    #expect(HLSPlaylist(of: session, continuing: Array("\(older)\n".utf8)) == nil)
  }

  @Test func viewsListKeyFramesAndPlaybackRequirements() throws {
    func media(_ number: Int, _ bytes: Int, _ codec: String, _ width: Int) -> Media {
      let layout = HLSLayout(bytes: bytes, keyFrame: 100..<600, width: width, height: 48, codec: codec)
      return ("\(number).m4s", "init-\(width).mp4", layout)
    }
    var playlist = try playlist([
      (media(1, 100_000, "avc1.4D400B", 64), 0, 5_000), (media(2, 10_000, "avc3.4D400B", 48), 5_000, 10_000),
      // This segment is too short to count by itself.
      (media(3, 10_000, "avc3.4D400B", 48), 30_000, 30_100),
    ])
    playlist.end(atMs: start + 30_100)
    let views = HLSViews(of: Array(playlist.text.utf8))
    let media = String(decoding: views.media, as: UTF8.self)
    #expect(!media.contains("# fragment") && media.contains("#EXTINF:5.000,\n1.m4s\n"))
    let keyFrames = String(decoding: views.keyFrames, as: UTF8.self)
    #expect(keyFrames.contains("#EXT-X-I-FRAMES-ONLY\n"))
    #expect(keyFrames.contains("#EXT-X-BYTERANGE:500@100\n#EXTINF:5.000,\n1.m4s\n"))
    #expect(
      String(decoding: views.multivariant, as: UTF8.self) == """
        #EXTM3U
        #EXT-X-VERSION:8
        #EXT-X-INDEPENDENT-SEGMENTS
        #EXT-X-STREAM-INF:BANDWIDTH=160000,CODECS="avc1.4D400B,avc3.4D400B",RESOLUTION=64x48
        session.m3u8
        #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=10000,CODECS="avc1.4D400B,avc3.4D400B",RESOLUTION=64x48,URI="iframes.m3u8"

        """)
  }
}
