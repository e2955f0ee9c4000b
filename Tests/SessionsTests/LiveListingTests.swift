import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import FrameBatches
@testable import Sessions

/// A live playlist that is made of segments alone, by the times of their publication.
@Suite struct LiveListingTests {
  private let session: SessionID
  private let startMs: Int64 = 1_767_859_512_340

  init() throws { session = try #require(SessionID("walk")) }

  private func playlist(
    _ segments: [PublishedSegment], _ publishedMs: [Int64], hasEnded: Bool = false, at nowMs: Int64
  ) -> (text: String, listing: LiveListing) {
    let listing = LiveListing(segments, publishedMs: publishedMs, hasEnded: hasEnded, nowMs: nowMs)
    var playlist = HLSPlaylist(
      of: session, .live, startMs: segments[0].startMs, maximumMs: HLSPlaylist.liveMaximumMs(of: segments))
    playlist.list(
      segments[..<listing.count], sessionStartMs: segments[0].startMs,
      next: { listing.ownEnds.contains($0) || $0 + 1 == segments.count ? nil : segments[$0 + 1] },
      marks: { _ in SegmentMarks() }, refuse: { _ in }, place: { _, entry in entry })
    if listing.hasEnded { playlist.end(atMs: segments[segments.count - 1].endMs) }
    return (playlist.text, listing)
  }

  /// Batches with early, late and held seams, which come soon or late, looked at whenever something may have changed.
  @Test(arguments: 1...60)
  func linesThatPlayersHaveReadDoNotChange(seed: Int) {
    var random = Random(seed: seed)
    let capturesChanges = random.once(in: 3)
    var (now, published) = (startMs, startMs)
    var segments: [PublishedSegment] = []
    var publishedMs: [Int64] = []
    for batch in 0..<8 {
      let parts = Int(random.int(1...3))
      for part in 1...parts {
        let lengthMs = random.int(1_000...5_000)
        segments.append(
          .made(
            now, now + lengthMs, batch: "\(batch)", part: part, parts: parts, gapAfterMs: random.once(in: 9) ? 700 : 0,
            capturesChanges: capturesChanges))
        now += lengthMs
        if part < parts, segments[segments.count - 1].gapAfterMs > 0 { now += 700 }
      }
      published = max(published, now) + random.int(10...(random.once(in: 3) ? 90_000 : 2_000))
      publishedMs += Array(repeating: published, count: parts)
      now += random.once(in: 4) ? random.int(2_000...40_000) : random.int(-200...400)
    }
    var seen = ""
    for count in 1...segments.count where count == segments.count || publishedMs[count] > publishedMs[count - 1] {
      var at = publishedMs[count - 1]
      let nextMs = count < segments.count ? publishedMs[count] : at + 120_000
      while at < nextMs {
        let (text, listing) = playlist(Array(segments[..<count]), Array(publishedMs[..<count]), at: at)
        #expect(text.hasPrefix(seen), "\(count) segments at \(at)")
        #expect(!listing.hasEnded && listing.changesMs > at)
        seen = text
        at = listing.changesMs
      }
    }
    let (text, listing) = playlist(segments, publishedMs, hasEnded: true, at: published + 120_000)
    #expect(text == seen + "#EXT-X-ENDLIST\n" && listing.count == segments.count && listing.changesMs == .max)
  }

  @Test func lastSegmentWaitsForTheNextBatchOrSomeTime() {
    let first = PublishedSegment.made(startMs, startMs + 4_000, batch: "a")
    let next = PublishedSegment.made(startMs + 4_200, startMs + 8_000, batch: "b")
    let published = startMs + 5_000
    func listing(_ segments: [PublishedSegment], _ publishedMs: [Int64], at nowMs: Int64) -> LiveListing {
      LiveListing(segments, publishedMs: publishedMs, hasEnded: false, nowMs: nowMs)
    }
    let waiting = listing([first], [published], at: published + 14_999)
    #expect(waiting.count == 0 && waiting.changesMs == published + 15_000)
    #expect(listing([first], [published], at: published + 15_000).count == 1)
    #expect(listing([first, next], [published, published + 4_000], at: published + 4_000).count == 1)
    // The next batch came in time, and later: then the entry had its own end.
    #expect(
      playlist([first, next], [published, published + 4_000], at: published + 4_000).text.contains("EXTINF:4.200,"))
    #expect(
      playlist([first, next], [published, published + 16_000], at: published + 16_000).text.contains("EXTINF:4.000,"))
  }

  /// Players of a session that nobody ends learn that nothing more comes.
  @Test func quietSessionHasAnEndUntilSomethingComes() {
    let segments = [PublishedSegment.made(startMs, startMs + 4_000, batch: "a")]
    let open = playlist(segments, [startMs], at: startMs + 3_599_999)
    #expect(!open.listing.hasEnded && open.listing.changesMs == startMs + 3_600_000)
    let quiet = playlist(segments, [startMs], at: startMs + 3_600_000)
    #expect(quiet.text == open.text + "#EXT-X-ENDLIST\n")
  }

  /// Measured: batches of ten seconds came after 9 to 17 seconds.
  @Test func playlistOfLongBatchesGrowsWithinOneAndAHalfTargets() {
    var (segments, publishedMs, changesMs) = ([PublishedSegment](), [Int64](), [Int64]())
    var (published, seen) = (startMs, "")
    for (batch, pauseMs) in [10_000, 9_000, 17_000, 9_000, 10_000, 17_000].enumerated() {
      published += Int64(pauseMs)
      for part in 1...2 {
        let start = startMs + Int64(batch) * 10_000 + Int64(part - 1) * 5_000
        segments.append(.made(start, start + 5_000, batch: "\(batch)", part: part, parts: 2))
        publishedMs.append(published)
      }
      let text = playlist(segments, publishedMs, at: published).text
      #expect(text != seen && text.hasPrefix(seen))
      (seen, changesMs) = (text, changesMs + [published])
    }
    let targetMs = HLSPlaylist.target(of: Array(seen.utf8)).map { $0 * 1_000 } ?? 0
    #expect(zip(changesMs, changesMs.dropFirst()).allSatisfy { 2 * ($1 - $0) <= 3 * targetMs }, "\(targetMs)")
  }

  /// One and a half target durations are more than the time between two batches (draft-pantos-hls-rfc8216bis, 6.2.2).
  @Test func targetFollowsTheFirstBatch() {
    func target(parts: Int, lengthMs: Int64 = 5_000, isFinal: Bool = false) -> Int64 {
      let segments = (1...parts).map { part in
        let start = startMs + Int64(part - 1) * lengthMs
        return PublishedSegment.made(start, start + lengthMs, part: part, parts: parts, final: isFinal && part == parts)
      }
      return HLSPlaylist(of: session, .live, startMs: startMs, maximumMs: HLSPlaylist.liveMaximumMs(of: segments))
        .targetMs / 1_000
    }
    #expect(target(parts: 1) == 6 && target(parts: 1, lengthMs: 2_000) == 6)
    #expect(target(parts: 2) == 12 && target(parts: 12) == 72 && target(parts: 700) == 75)
    // A session that was never open is not reloaded.
    #expect(target(parts: 12, isFinal: true) == 6)
  }
}
