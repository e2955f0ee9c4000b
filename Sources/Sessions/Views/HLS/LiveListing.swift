// The entries of a live playlist: which segments it lists, how long each lasts, and the target duration. The worker that keeps `hls/`
// and the server that makes playlists of segments alone have the same rules. Lines that players have read do not change. Pure.

import Encoding

extension HLSPlaylist {
  /// A fifth more than this time between two batches is one and a half target durations. Players reload a playlist that seldom, so
  /// longer batches do not raise the target.
  private static let maximumBatchTargetMs: Int64 = 75_000

  /// Returns the duration of the longest entry of a live playlist. It depends on the first segment, so it never changes: the longest
  /// segment that its interval allows, and a seam. Players expect a new entry within one and a half target durations
  /// (draft-pantos-hls-rfc8216bis, 6.2.2), so the target of a growing session is a fifth longer than its first batch.
  package static func liveMaximumMs(of segments: [PublishedSegment]) -> Int64 {
    let first = segments[0]
    let longestMs = first.fullMs + first.intervalMs
    if segments.areOneFinalBatch { return longestMs }
    let batchMs = first.parts > 1 ? Int64(first.parts) * first.fullMs : first.durationMs + first.gapAfterMs
    return max(longestMs, min(batchMs * 6 / 5, maximumBatchTargetMs))
  }

  /// Lists segments, and the pictures that are held between them. A segment without room, or whose video is damaged, is left out.
  ///
  /// - Parameters:
  ///   - before: the segment before the first of them; nil if that is the first of the session.
  ///   - startMs: the instant that the times in fragments count from. Those in packs have their own.
  ///   - packs: where segments lie that are in packs, by their starts; that of `before`, too.
  ///   - next: returns the segment that ends the last picture of the one with this index; nil if that has its own end.
  ///   - marks: returns the chapters of the segment with this index.
  ///   - refuse: called with an entry for which there is no room; when it returns, the entry is left out.
  ///   - place: returns the entry of a fragment, with its layout if that is wanted; nil if its video is damaged.
  package mutating func list(
    _ segments: ArraySlice<PublishedSegment>, after before: PublishedSegment? = nil, sessionStartMs startMs: Int64,
    packs: [Int64: HLSPackPart] = [:], next: (Int) -> PublishedSegment?, marks: (Int) throws -> SegmentMarks,
    refuse: (Entry) throws -> Void,
    place: (HLSSegment, Entry) throws -> Entry?
  ) rethrows {
    var names = Entry.InitializationNames()
    var last: (segment: PublishedSegment, kind: String)?
    for index in segments.indices {
      let segment = segments[index]
      let before = index > segments.startIndex ? segments[index - 1] : before
      let kind = last.flatMap { segment.hasPictureKind(of: $0.segment) ? $0.kind : nil } ?? segment.pictureKind
      last = (segment, kind)
      let (pack, behind) = (packs[segment.startMs], next(index))
      let part = HLSSegment(
        segment, kind: kind, before: behind, sessionStartMs: pack?.originMs ?? startMs, maximumMs: maximumMs)
      let packBehind = behind.flatMap { packs[$0.startMs] }
      let (placed, entry) =
        if let pack, !pack.isCopied { pack.entry(of: part, before: packBehind) } else { self.entry(of: part, &names) }
      guard hasRoom(for: entry) else {
        try refuse(entry)
        continue
      }
      // Else a gap before the next entry, or before the end, takes its place.
      guard let entry = try place(placed, entry) else { continue }
      let marks = try marks(index)
      if let before {
        let last = packs[before.startMs]
        if before.isHeld(until: segment) || last?.isHeld(before, until: segment, pack) ?? false {
          try hold(before, in: last, untilMs: segment.startMs, sessionStartMs: startMs, &names, place)
        }
      }
      append(entry, marks, behind: before?.gap(before: segment))
    }
  }

  /// Lists the last picture of a segment until the next one begins. Players have the segment's own entry already.
  private mutating func hold(
    _ segment: PublishedSegment, in pack: HLSPackPart?, untilMs: Int64, sessionStartMs: Int64,
    _ names: inout Entry.InitializationNames,
    _ place: (HLSSegment, Entry) throws -> Entry?
  ) rethrows {
    let (startMs, restMs) = (endMs, untilMs - endMs)
    guard hasEntries, restMs > 0, restMs <= Self.maximumGapMs else { return }
    let count = (restMs + targetMs - 1) / targetMs
    for index in 0..<count {
      let range = startMs + restMs * index / count..<startMs + restMs * (index + 1) / count
      let own = HLSSegment(holding: segment, in: range, sessionStartMs: pack?.originMs ?? sessionStartMs)
      let (part, entry) =
        if let pack, !pack.isCopied { pack.hold(segment, in: range) } else { self.entry(of: own, &names) }
      // Else a gap takes its place.
      guard let entry = try place(part, entry) else { return }
      append(entry, nil)
    }
  }

  /// Returns a fragment as it follows the others, and its entry.
  private func entry(of part: HLSSegment, _ names: inout Entry.InitializationNames) -> (HLSSegment, Entry) {
    var part = part
    part.carriesParameterSets = isMixed(before: names.name(of: part))
    return (part, Entry(part, initialization: names.name(of: part)))
  }
}

extension [PublishedSegment] {
  /// Whether they are all of a session that was complete when its first segment came.
  package var areOneFinalBatch: Bool {
    guard let first, let last else { return false }
    return last.isFinal && first.batchDigest == last.batchDigest
  }
}

extension PublishedSegment {
  /// The time for which a live playlist holds a batch's last segment back, in milliseconds.
  private static let listingWaitMs: ClosedRange<Int64> = 15_000...60_000

  /// Returns how long a live playlist waits for the next batch, which may change how long this segment's last picture is shown, in
  /// milliseconds. The next batch is expected to last as long as this one.
  func listingWaitMs(batchStartMs: Int64) -> Int64 {
    min(max(2 * (endMs - batchStartMs), Self.listingWaitMs.lowerBound), Self.listingWaitMs.upperBound)
  }
}

/// The segments that a live playlist lists at an instant, by the times of publication alone. So it only grows, with each look at it.
package struct LiveListing: Sendable, Equatable {
  /// A session of which nothing came for this long has an end until something comes, in milliseconds. No playlist lists a longer gap.
  private static let quietMs = HLSPlaylist.maximumGapMs

  /// The number of listed segments, from the first one on.
  package let count: Int
  /// The indices of the last segments of batches that are listed with their own ends. The next segment, if there is one, came later.
  package let ownEnds: Set<Int>
  /// Whether the session has ended, or is quiet.
  package let hasEnded: Bool
  /// When the listing changes although nothing is published, in unix milliseconds; `Int64.max` if it does not.
  package let changesMs: Int64

  /// - Parameters:
  ///   - segments: all of the session, in the order of their starts, at least one.
  ///   - publishedMs: when each was published, in unix milliseconds.
  ///   - hasEnded: whether the session's end is recorded.
  package init(_ segments: [PublishedSegment], publishedMs: [Int64], hasEnded isRecorded: Bool, nowMs: Int64) {
    let quietMs = (publishedMs.max() ?? .min) &+ Self.quietMs
    hasEnded = isRecorded || nowMs >= quietMs
    var (count, ownEnds, changesMs) = (segments.count, Set<Int>(), hasEnded ? .max : quietMs)
    var batchStartMs = segments[0].startMs
    for (index, segment) in segments.enumerated() {
      if index > 0, segment.batchDigest != segments[index - 1].batchDigest { batchStartMs = segment.startMs }
      let next = index + 1 < segments.count ? segments[index + 1] : nil
      // The others of a batch end where the next one begins, and may not be published yet.
      if next?.batchDigest == segment.batchDigest || segment.part < segment.parts { continue }
      if segment.hasKnownEnd {
        ownEnds.insert(index)
        continue
      }
      let dueMs = publishedMs[index] &+ segment.listingWaitMs(batchStartMs: batchStartMs)
      if let next {
        // A later batch may belong into a gap between two others.
        if publishedMs[index + 1] <= dueMs && segment.gap(before: next) == nil { continue }
        ownEnds.insert(index)
      }
      if !hasEnded && nowMs < dueMs {
        (count, changesMs) = (index, min(changesMs, dueMs))
        break
      }
    }
    (self.count, self.ownEnds, self.changesMs) = (count, ownEnds, changesMs)
  }
}
