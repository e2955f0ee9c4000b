// Rolling retention in an object store. The head of a session says where it begins, and is written first: from then on no reader shows
// earlier segments, and no publisher adds them. Then the views are written without them, and their objects go. Until that is done, the head
// says so, and the next pass finishes it.

import Encoding
import FileSystem
import FrameBatches

extension ObjectSession {
  /// First segments that the head does not list any more.
  struct Beginning {
    let removed: [SessionEntry]
    /// The segment behind them.
    let first: SessionEntry
    /// The session after it.
    let published: Published
  }

  /// Takes first segments out of the index. The last segment stays.
  ///
  /// - Parameters:
  ///   - lastMs: the start of the last one of them.
  ///   - publishedMs: when that one was published, in unix milliseconds.
  /// - Returns: nil if there are none, or the head has changed meanwhile.
  func removeFirst(through lastMs: Int64, from head: Head, publishedMs: Int64) throws -> Beginning? {
    guard var next = head.published else { return nil }
    let startMs = next.index.startMs
    var removed: [SessionEntry] = []
    var first: SessionEntry?
    while let page = next.pages.first, page.startMs <= lastMs {
      let entries = try entries(of: page)
      let kept = entries.drop { $0.startMs <= lastMs }
      removed += entries.prefix(entries.count - kept.count)
      next.pages.removeFirst()
      guard !kept.isEmpty else { continue }
      next.pages = try sealed(Array(kept)) + next.pages
      first = kept.first
      break
    }
    if next.pages.isEmpty {
      removed += next.index.removeFirst(next.index.entries.dropLast().prefix { $0.startMs <= lastMs }.count)
      first = next.index.entries.first
    } else if first == nil {
      first = try entries(of: next.pages[0]).first
    }
    guard !removed.isEmpty, let first else { return nil }
    next.index.forget(removed, startMs: first.startMs)
    next.retention = SessionRetention(
      startMs: first.startMs, originMs: next.retention?.originMs ?? startMs,
      segments: (next.retention?.segments ?? 0) + removed.count, isRemoving: true,
      publishedMs: max(publishedMs, next.retention?.publishedMs ?? 0))
    return try write(next, over: head, end: head.end).map { Beginning(removed: removed, first: first, published: $0) }
  }

  /// Writes `session.json` and `session.ffconcat` without first segments.
  func updateViews(without beginning: Beginning) throws {
    guard beginning.published.hasViews else { return }
    let names = [IndexText.jsonFile, IndexText.scriptFile]
    let there = try names.map { try objects.get(key($0), limit: Self.viewBytes)?.bytes }
    let (index, last) = (beginning.published.index, beginning.published.index.last)
    guard let json = there[0], let script = there[1],
      let view = IndexText.removing(
        beginning.removed, before: beginning.first, last: last, json: json, script: script, of: id),
      view.index.hasTotals(of: index)
    else { return try updateViews(nil, nil) }
    for (file, kind) in zip(view.files, [ObjectKind.json, .text]) {
      _ = try objects.put(key(file.name), .bytes(file.bytes), kind, when: .always)
    }
    if try objects.head(headKey)?.tag != beginning.published.tag { try updateViews(nil, nil) }
  }

  /// Removes the objects of segments that start before an instant: first all manifests, then all others.
  func removeObjects(before startMs: Int64, _ cancellation: Cancellation) throws {
    let prefix = key("segment-")
    let old = try keys(below: prefix, before: startMs)
    let isManifest = { (key: String) in SegmentName.start(ofManifest: String(key.dropFirst(self.key("").count))) != nil
    }
    let sprites = try keys(below: key(ThumbnailPackage.directory + "/segment-"), before: startMs)
    let packs = try keys(below: key("pack-"), before: startMs)
    for key in old.filter(isManifest) + packs + old.filter({ !isManifest($0) }) + sprites {
      try cancellation.check()
      try objects.delete(key, nil)
    }
  }

  /// Returns the keys of a prefix that go on with 13 digits of an earlier instant.
  private func keys(below prefix: String, before startMs: Int64) throws -> [String] {
    var walk = ListWalk(prefix, of: objects, name: name)
    var found: [String] = []
    while let page = try walk.next() {
      for object in page {
        guard let start = Int64(object.key.dropFirst(prefix.count).prefix(13)) else { continue }
        if start >= startMs { return found }
        found.append(object.key)
      }
    }
    return found
  }

  /// Removes pages of the index that list removed segments only, once no reader has the head before any more.
  func removePages(of published: Published) throws {
    let kept = Set(published.pages.map(\.file))
    for page in try pageKeys() {
      let file = String(page.key.dropFirst(indexKey("").count))
      guard !kept.contains(file), let known = Page(file), known.startMs < published.index.startMs,
        page.ageS.map({ $0 >= ObjectStore.orphanTTL }) ?? false
      else { continue }
      try objects.delete(page.key, page.tag)
    }
  }

  /// Makes the session an empty one, which the next batch begins anew. Its objects are to be removed: ``removeForgotten(_:_:_:)``.
  ///
  /// - Parameter reason: of the tombstone that follows; nil for none.
  /// - Returns: the tag of the head; nil if it has changed meanwhile.
  func forget(_ head: Head, tombstoneReason reason: String?) throws -> ObjectTag? {
    let bytes = Self.undeletedHead(isRemoving: true, tombstoneReason: reason)
    return try objects.putOwn(headKey, bytes, .json, when: .unchanged(since: head.tag))
  }

  /// Removes the objects of a session that was made empty, unless it has begun anew.
  ///
  /// - Parameters:
  ///   - tag: of the empty head.
  ///   - reason: of the tombstone that refuses later batches from then on; nil to take them.
  func removeForgotten(_ tag: ObjectTag, _ reason: String?, _ cancellation: Cancellation) throws {
    _ = try removeObjects(unlessChanged: true, while: { try objects.head(headKey)?.tag == tag }, cancellation)
    let tombstone = reason.map { Tombstone(id, deletedAtMs: WallClock.nowMs, reason: $0) }
    let bytes = tombstone?.bytes ?? Self.undeletedHead()
    _ = try objects.put(headKey, .bytes(bytes), .json, when: .matching(tag))
  }
}
