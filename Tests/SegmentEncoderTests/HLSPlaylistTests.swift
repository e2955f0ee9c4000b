import Testing

@testable import SegmentEncoder

@Suite struct HLSPlaylistTests {
  private let start: Int64 = 1_767_859_512_340

  private func media(_ number: Int, _ initialization: String = "init-a.mp4") -> HLSPlaylist.Media {
    HLSPlaylist.Media(file: "\(number).m4s", initialization: initialization)
  }

  @Test func segmentsGapsAndSizesAreListed() {
    let playlist = HLSPlaylist(
      isLive: false, isComplete: true,
      entries: [
        .init(media: media(1), startMs: start, lengthMs: 5_000),
        .init(media: nil, startMs: start + 5_000, lengthMs: 12_345),
        .init(media: media(2), startMs: start + 17_345, lengthMs: 700),
        .init(media: media(3, "init-b.mp4"), startMs: start + 18_045, lengthMs: 5_001),
      ])
    #expect(
      playlist.text == """
        #EXTM3U
        #EXT-X-VERSION:8
        #EXT-X-INDEPENDENT-SEGMENTS
        #EXT-X-TARGETDURATION:13
        #EXT-X-PLAYLIST-TYPE:VOD
        #EXT-X-MAP:URI="init-a.mp4"
        #EXT-X-PROGRAM-DATE-TIME:2026-01-08T08:05:12.340Z
        #EXTINF:5.000,
        1.m4s
        #EXT-X-PROGRAM-DATE-TIME:2026-01-08T08:05:17.340Z
        #EXT-X-GAP
        #EXTINF:12.345,
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

        """)
  }

  /// What is promised in a live playlist's first line holds for all that follows.
  @Test func aLivePlaylistHasItsGapsInPieces() {
    let entries: [HLSPlaylist.Entry] = [
      .init(media: media(1), startMs: start, lengthMs: 5_000),
      .init(media: nil, startMs: start + 5_000, lengthMs: 20_001),
    ]
    let text = HLSPlaylist(isLive: true, isComplete: false, entries: entries).text
    #expect(text.contains("#EXT-X-TARGETDURATION:10\n#EXT-X-PLAYLIST-TYPE:EVENT\n"))
    #expect(
      text.hasSuffix(
        """
        #EXT-X-PROGRAM-DATE-TIME:2026-01-08T08:05:17.340Z
        #EXT-X-GAP
        #EXTINF:10.000,
        gap.m4s
        #EXT-X-GAP
        #EXTINF:10.000,
        gap.m4s
        #EXT-X-GAP
        #EXTINF:0.001,
        gap.m4s

        """))
    #expect(HLSPlaylist(isLive: true, isComplete: true, entries: entries).text == text + "#EXT-X-ENDLIST\n")
  }

  @Test func aSegmentLongerThanUsualRaisesTheTarget() {
    let entries = [HLSPlaylist.Entry(media: media(1), startMs: start, lengthMs: 10_001)]
    #expect(HLSPlaylist(isLive: true, isComplete: true, entries: entries).text.contains("TARGETDURATION:11\n"))
    #expect(HLSPlaylist(isLive: false, isComplete: true, entries: entries).text.contains("TARGETDURATION:11\n"))
  }
}
