// When the segments of a stored session were published: the ages of their manifests and packs, as lists of the store tell them.

import Encoding
import FileSystem

/// The times of publication of a session's segments. Ask for the segments in order.
struct StoredPublications {
  private var manifests: PublishedObjects
  private var packs: PublishedObjects

  /// - Parameters:
  ///   - startMs: of the first segment that is asked for.
  ///   - nowMs: in unix milliseconds.
  init(of session: ObjectSession, from startMs: Int64, nowMs: Int64) {
    manifests = PublishedObjects(
      of: session, "segment-", after: Self.stem(startMs), nowMs, start: SegmentName.start(ofManifest:))
    packs = PublishedObjects(
      of: session, "pack-", after: String(SegmentName.pack(startMs).dropLast(4)), nowMs,
      start: SegmentName.start(ofPack:))
  }

  /// The beginning of the names of a segment's objects.
  static func stem(_ startMs: Int64) -> String { String(SegmentName.video(startMs).prefix(8 + 13)) }

  /// Returns when a segment was published, in unix milliseconds; nil if its object is gone, or the store tells no ages.
  mutating func publishedMs(of entry: SessionEntry) throws -> Int64? {
    guard let pack = entry.pack else { return try manifests.publishedMs(of: entry.startMs) }
    if pack.publishedMs > 0 { return pack.publishedMs }
    return try packs.publishedMs(of: pack.startMs)
  }

  /// Returns when the latest of all segments behind was published, in unix milliseconds; nil if nobody knows. Compacted segments do not
  /// count.
  mutating func latestMs() throws -> Int64? {
    try [manifests.latestMs(), packs.latestMs()].compactMap { $0 }.max()
  }
}

/// The objects of a session whose names begin alike, one for each segment or for each pack.
private struct PublishedObjects {
  private var walk: ListWalk
  private let nowMs: Int64
  private let prefix: String
  /// Returns the start in an object's name; nil for any other object.
  private let start: (String) -> Int64?
  /// Of the list that was read last, the next one at its end.
  private var listed: [(startMs: Int64, publishedMs: Int64)] = []

  init(
    of session: ObjectSession, _ names: String, after name: String, _ nowMs: Int64, start: @escaping (String) -> Int64?
  ) {
    (self.nowMs, prefix, self.start) = (nowMs, session.key(""), start)
    walk = ListWalk(session.key(names), of: session.objects, name: session.name, after: session.key(name))
  }

  mutating func publishedMs(of startMs: Int64) throws -> Int64? {
    while try read(), let next = listed.last, next.startMs <= startMs {
      if next.startMs == startMs { return next.publishedMs }
      listed.removeLast()
    }
    return nil
  }

  mutating func latestMs() throws -> Int64? {
    var latest: Int64?
    while try read() {
      latest = max(latest ?? .min, listed.map(\.publishedMs).max() ?? .min)
      listed = []
    }
    return latest
  }

  /// - Returns: whether there is a next one.
  private mutating func read() throws -> Bool {
    while listed.isEmpty {
      guard let page = try walk.next() else { return false }
      listed = page.reversed().compactMap { object in
        guard let start = start(String(object.key.dropFirst(prefix.count))), let ageS = object.ageS else { return nil }
        return (start, nowMs - 1_000 * Int64(ageS))
      }
    }
    return true
  }
}
