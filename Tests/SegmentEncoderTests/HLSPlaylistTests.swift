import Foundation
import Testing

@testable import SegmentEncoder

@Suite struct HLSPlaylistTests {
  private let start: Int64 = 1_767_859_512_340

  private func media(_ number: Int, _ initialization: String = "init-a.mp4") -> HLSPlaylist.Media {
    HLSPlaylist.Media(file: "\(number).m4s", initialization: initialization)
  }

  private func text(_ entries: [HLSPlaylist.Entry], isLive: Bool = false, isComplete: Bool = true) throws -> String {
    let session = try #require(SessionID("walk"))
    return HLSPlaylist(session: session, isLive: isLive, isComplete: isComplete, entries: entries).text
  }

  @Test func segmentsGapsAndSizesAreListed() throws {
    let entries: [HLSPlaylist.Entry] = [
      .init(media: media(1), startMs: start, lengthMs: 5_000),
      .init(media: nil, startMs: start + 5_000, lengthMs: 12_345),
      .init(media: media(2), startMs: start + 17_345, lengthMs: 700),
      .init(media: media(3, "init-b.mp4"), startMs: start + 18_045, lengthMs: 5_001),
    ]
    let expected = """
      #EXTM3U
      # session walk
      #EXT-X-VERSION:8
      #EXT-X-INDEPENDENT-SEGMENTS
      #EXT-X-TARGETDURATION:10
      #EXT-X-PLAYLIST-TYPE:VOD
      #EXT-X-MAP:URI="init-a.mp4"
      #EXT-X-PROGRAM-DATE-TIME:2026-01-08T08:05:12.340Z
      #EXTINF:5.000,
      1.m4s
      #EXT-X-PROGRAM-DATE-TIME:2026-01-08T08:05:17.340Z
      #EXT-X-GAP
      #EXTINF:10.000,
      gap.m4s
      #EXT-X-GAP
      #EXTINF:2.345,
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
    #expect(try text(entries) == expected)
    let live = expected.replacingOccurrences(of: "VOD", with: "EVENT")
    #expect(try text(entries, isLive: true) == live)
    #expect(
      try text(entries, isLive: true, isComplete: false) == live.replacingOccurrences(of: "#EXT-X-ENDLIST\n", with: ""))
    #expect(HLSPlaylist.session(of: expected) == "walk")
    #expect(HLSPlaylist.session(of: "#EXTM3U\n1.ts\n") == nil)
  }

  /// One wrong clock must not make a playlist of a million lines.
  @Test func aGapOfMoreThanAnHourIsJumpedOver() throws {
    let hour: Int64 = 3_600_000
    func entries(_ gapMs: Int64) -> [HLSPlaylist.Entry] {
      [
        .init(media: media(1), startMs: start, lengthMs: 5_000),
        .init(media: nil, startMs: start + 5_000, lengthMs: gapMs),
        .init(media: media(2), startMs: start + 5_000 + gapMs, lengthMs: 5_000),
      ]
    }
    let laidOut = try text(entries(hour))
    #expect(laidOut.components(separatedBy: "gap.m4s").count - 1 == 360)
    #expect(!laidOut.contains("DISCONTINUITY"))
    let jumped = try text(entries(hour + 1))
    #expect(!jumped.contains("gap.m4s"))
    #expect(
      jumped.contains("1.m4s\n#EXT-X-DISCONTINUITY\n#EXT-X-PROGRAM-DATE-TIME:2026-01-08T09:05:17.341Z\n"))
  }

  @Test func aSegmentLongerThanUsualRaisesTheTarget() throws {
    let entries = [HLSPlaylist.Entry(media: media(1), startMs: start, lengthMs: 10_001)]
    #expect(try text(entries).contains("TARGETDURATION:11\n"))
  }
}
