// The passes of rolling retention over an object store. Several workers may make them at once. A pass reads the heads that have changed
// since the last one, and needs no request for the sessions of which nothing goes. After a crash the heads say which removals to finish.

import Encoding
import FileSystem
import FrameBatches
import Synchronization

/// The removal of segments of stored sessions: those that were published too long ago, or the oldest of all until the sessions have room.
package struct StoredRetention: Sendable {
  /// Maximum number of segments in one step.
  private static let maximumStep = 500
  /// Milliseconds between two passes, at least for a limit of bytes, and for each list of the index.
  private static let (bytesMs, eachListMs) = (600_000, 10_000)

  private let store: ObjectStore
  private let limits: RetentionLimits
  /// The maximum age of the last publication in a session, in milliseconds; nil for no limit.
  private let sessionsMs: Int64?
  /// The reason in the tombstones of sessions that are too old; nil for no tombstones.
  private let tombstoneReason: String?
  private let shouldContinue: @Sendable () -> Bool
  private let heads: StoredHeads
  private let bytes: StoredBytes
  private let firsts = FirstPublications()

  /// - Parameters:
  ///   - sessionsMs: the maximum age of the last publication in a session, in milliseconds; nil for no limit.
  ///   - tombstoneReason: the reason in the tombstones of sessions that are too old; nil to let them come back.
  ///   - shouldContinue: asked between requests; if it returns false, the rest is left for the next pass.
  package init(
    _ limits: RetentionLimits, of store: ObjectStore, sessionsMs: Int64? = nil, tombstoneReason: String? = nil,
    shouldContinue: @escaping @Sendable () -> Bool = { true }
  ) {
    (self.limits, self.store, self.sessionsMs, self.tombstoneReason) = (limits, store, sessionsMs, tombstoneReason)
    self.shouldContinue = shouldContinue
    let sessions = StoredSessions(store.objects, name: store.name)
    heads = StoredHeads(of: sessions, countsGaps: false)
    bytes = StoredBytes(of: sessions)
  }

  /// The time from one pass to the next, in milliseconds: it grows with the index, because lists cost money.
  package var intervalMs: Int {
    let least = limits.maximumBytes == nil ? limits.intervalMs : Self.bytesMs
    return max(least, Self.eachListMs * heads.lists)
  }

  private var cancellation: Cancellation { Cancellation { [shouldContinue] in !shouldContinue() } }

  private struct Pass {
    let nowMs: Int64
    let isDryRun: Bool
  }

  /// Removes what is beyond the limits, and finishes removals that were interrupted. Without limits it does only that.
  ///
  /// - Parameters:
  ///   - nowMs: in unix milliseconds.
  ///   - isDryRun: whether to remove nothing and only report.
  package func run(nowMs: Int64 = WallClock.nowMs, isDryRun: Bool = false) -> RetentionReport {
    let pass = Pass(nowMs: nowMs, isDryRun: isDryRun)
    var report = RetentionReport()
    do {
      try heads.readAll(cancellation.check)
      let all = heads.all
      firsts.keep(all.keys)
      for (id, content) in all.sorted(by: { $0.key.description < $1.key.description }) {
        try cancellation.check()
        try removeOld(id, content, pass, &report)
      }
      if let maximum = limits.maximumBytes {
        // Segments that are gone do not count.
        if !report.removed.isEmpty, !isDryRun { try heads.readAll(cancellation.check) }
        try removeOldest(beyond: maximum, pass, &report)
      }
    } catch is Cancelled {
      // The next pass goes on.
    } catch {
      report.failures.append(error)
    }
    report.sort()
    return report
  }

  // MARK: - The rules

  /// Removes what is too old in a session, and finishes what was interrupted.
  private func removeOld(
    _ id: SessionID, _ content: StoredHeads.Content, _ pass: Pass, _ report: inout RetentionReport
  ) throws {
    switch content {
    case .deleted, .nothing(isRemoving: false): return
    // A damaged head is a failure of each pass.
    case .damaged, .nothing(isRemoving: true): try perform(nil, on: id, pass, &report)
    case .published(let totals):
      if totals.isRemoving { try perform(nil, on: id, pass, &report) }
      if let sessionsMs {
        let rule = RemovalRule.published(byMs: pass.nowMs - sessionsMs)
        if try removesFirst(rule, id, totals, pass) { try perform(rule, isWholeOnly: true, on: id, pass, &report) }
      }
      if let ageMs = limits.ageMs {
        let rule = RemovalRule.published(byMs: pass.nowMs - ageMs)
        if try removesFirst(rule, id, totals, pass) { try perform(rule, on: id, pass, &report) }
      }
    }
  }

  /// Whether a rule removes the first segment of a session. The time of its publication does not change.
  private func removesFirst(
    _ rule: RemovalRule, _ id: SessionID, _ totals: StoredHeads.Totals, _ pass: Pass
  ) throws -> Bool {
    let startMs = totals.startMs
    let firstMs = try firsts.publishedMs(of: id, startMs) { try firstPublishedMs(startMs, store.session(id), pass) }
    return rule.removes(startMs, publishedMs: firstMs)
  }

  /// Removes the oldest segments of all sessions.
  private func removeOldest(beyond maximum: Int, _ pass: Pass, _ report: inout RetentionReport) throws {
    // One head that claims too much would remove the segments of all others.
    let all = heads.published
    let sessions = all.filter(\.value.isPlausible)
    report.failures += all.keys.filter { sessions[$0] == nil }.sorted { $0.description < $1.description }.map { id in
      BadSession(
        store.name + store.session(id).headKey, "it counts other segments or bytes than it lists",
        advice: StoredIndex.advice)
    }
    let sized = SizedStore(
      store: store, sessions: sessions, sizes: try bytes.bytes(of: sessions, cancellation),
      isOver: { rule, session, published in try isOver(rule, session, published, pass) })
    let oldest = OldestSegments(sessions: sized, nowMs: pass.nowMs, shouldContinue: shouldContinue)
    for (session, rule) in try oldest.rules(for: Array(sessions.keys), maximumBytes: maximum) {
      try cancellation.check()
      try perform(rule, on: session, pass, &report)
    }
  }

  /// Returns when the first segment was published, in unix milliseconds; nil if the store does not tell it. A pack begins with it, too.
  private func firstPublishedMs(_ startMs: Int64, _ session: ObjectSession, _ pass: Pass) throws -> Int64? {
    for name in [SegmentName.manifest(startMs), SegmentName.pack(startMs)] {
      guard let info = try store.objects.head(session.key(name)) else { continue }
      return info.ageS.map { pass.nowMs - 1_000 * Int64($0) }
    }
    // It was compacted.
    guard let published = try session.published(),
      let first = try session.firstEntries(of: published, limit: 1).first, first.startMs == startMs
    else { return nil }
    return try publishedMs(of: first, session, pass)
  }

  /// Returns when a segment was published, in unix milliseconds; nil if the store does not tell it.
  private func publishedMs(of entry: SessionEntry, _ session: ObjectSession, _ pass: Pass) throws -> Int64? {
    if let pack = entry.pack, pack.publishedMs > 0 { return pack.publishedMs }
    return try session.ageS(of: entry).map { pass.nowMs - 1_000 * Int64($0) }
  }

  /// Whether a rule removes the last segment, and nothing was published for long.
  private func isOver(
    _ rule: RemovalRule, _ session: ObjectSession, _ published: ObjectSession.Published, _ pass: Pass
  ) throws -> Bool {
    let index = published.index
    let lastMs = try publishedMs(of: index.last, session, pass)
    guard rule.removes(index.last.startMs, publishedMs: lastMs) else { return false }
    if rule.removesComplete && index.isComplete { return true }
    var publications = StoredPublications(of: session, from: index.startMs, nowMs: pass.nowMs)
    let compactedMs = published.compaction.flatMap { $0.publishedMs > 0 ? $0.publishedMs : nil }
    guard let latestMs = try [publications.latestMs(), compactedMs].compactMap({ $0 }).max() else { return false }
    return max(latestMs, published.retention?.publishedMs ?? .min) < rule.idleSinceMs
  }

  // MARK: - One session

  /// Removes what a rule says of a session, or finishes a removal that was interrupted.
  ///
  /// - Parameters:
  ///   - rule: nil to do only that.
  ///   - isWholeOnly: whether the session goes as a whole or stays as it is.
  /// - Throws: ``Cancelled``.
  private func perform(
    _ rule: RemovalRule?, isWholeOnly: Bool = false, on id: SessionID, _ pass: Pass, _ report: inout RetentionReport
  ) throws {
    var removed = RemovedSegments(id)
    defer { report.add(removed, pass.isDryRun) }
    do {
      let session = store.session(id)
      while try session.removingObjectsIfDeleted({ try step(rule, isWholeOnly, session, pass, &removed) }) {
        try cancellation.check()
      }
    } catch is SessionDeleted {
      // It has nothing to remove.
    } catch let error where !(error is Cancelled) {
      report.failures.append(error)
    }
  }

  /// - Returns: whether there may be more to remove.
  private func step(
    _ rule: RemovalRule?, _ isWholeOnly: Bool, _ session: ObjectSession, _ pass: Pass, _ removed: inout RemovedSegments
  ) throws -> Bool {
    let head = try session.head()
    guard let published = head.published else {
      if head.isRemoving, let tag = head.tag, !pass.isDryRun {
        try session.removeForgotten(tag, head.tombstoneReason, cancellation)
      }
      return false
    }
    if published.retention?.isRemoving == true, !pass.isDryRun {
      try finish(session, nil)
      return rule != nil
    }
    guard let rule else { return false }
    if try isOver(rule, session, published, pass) {
      removed.isWhole = try hasAnnouncedEnd(session, head)
      removed.isEnding = !removed.isWhole
      if removed.isWhole {
        guard try pass.isDryRun || removeWhole(session, head, isWholeOnly) else {
          removed.isWhole = false
          return true
        }
        removed.add(published.index)
        return false
      }
      if !pass.isDryRun { try requestEnd(session, head) }
    }
    return try !isWholeOnly && removeFirst(rule, session, published, pass, &removed)
  }

  /// Removes some first segments of a session.
  ///
  /// - Returns: whether there may be more to remove.
  private func removeFirst(
    _ rule: RemovalRule, _ session: ObjectSession, _ published: ObjectSession.Published, _ pass: Pass,
    _ removed: inout RemovedSegments
  ) throws -> Bool {
    let (old, latestMs, isFull) = try firstSegments(rule, session, published, pass)
    guard let last = old.last else { return false }
    if pass.isDryRun {
      removed.add(old)
      return false
    }
    let marker = try store.markers.add(session.id, known: nil)
    // Views that lack segments would be made from all pages of the index.
    if published.isLong { try session.updateViews(nil, store.events()) }
    // Read it now: workers may have published in the session while the ages were asked for.
    let head = try session.head()
    let isSame = try head.published.map { try session.firstEntries(of: $0, limit: old.count).elementsEqual(old) }
    guard isSame == true,
      let beginning = try session.removeFirst(through: last.startMs, from: head, publishedMs: latestMs)
    else {
      try store.markers.remove(marker)
      return true
    }
    removed.add(beginning.removed)
    try finish(session, beginning)
    try store.markers.remove(marker)
    return isFull
  }

  /// Returns the first segments that a rule removes: whole packs, and never the last segment.
  ///
  /// - Returns: also when the latest of them was published, in unix milliseconds, and whether there may be more.
  private func firstSegments(
    _ rule: RemovalRule, _ session: ObjectSession, _ published: ObjectSession.Published, _ pass: Pass
  ) throws -> (old: [SessionEntry], latestMs: Int64, isFull: Bool) {
    let all = try Array(session.firstEntries(of: published, limit: pass.isDryRun ? Int.max : Self.maximumStep))
    var publications = StoredPublications(of: session, from: published.index.startMs, nowMs: pass.nowMs)
    var (count, latestMs, lastPack): (Int, Int64, PackPlace?) = (0, 0, nil)
    for entry in all.dropLast() {
      try cancellation.check()
      let publishedMs = try publications.publishedMs(of: entry)
      let isOfLast = entry.pack?.isInFile(of: lastPack) ?? false
      guard isOfLast || rule.removes(entry.startMs, publishedMs: publishedMs) else { break }
      (count, latestMs, lastPack) = (count + 1, max(latestMs, publishedMs ?? 0), entry.pack)
    }
    let isFull = count + 1 == all.count && all.count == Self.maximumStep
    // The rest of its last pack stays, so that stays as a whole.
    while count > 0, let pack = all[count - 1].pack, pack.isInFile(of: all[count].pack) { count -= 1 }
    return (Array(all[..<count]), latestMs, isFull)
  }

  /// Brings the views up to date, and removes the objects of removed segments.
  ///
  /// - Parameter beginning: what was just removed; nil after an interruption.
  private func finish(_ session: ObjectSession, _ beginning: ObjectSession.Beginning?) throws {
    guard let published = try beginning?.published ?? session.published(), let retention = published.retention else {
      return
    }
    if let beginning { try session.updateViews(without: beginning) } else { try session.updateViews(nil, nil) }
    try store.playlist(of: session).slide(to: retention)
    let thumbnails = ObjectThumbnails(session: session, staging: store.staging)
    if let beginning {
      try thumbnails.removeFirst(before: retention.startMs, sessionStartMs: beginning.removed[0].startMs)
    } else if try thumbnails.isThere() {
      try thumbnails.update(with: [:])
    }
    try session.removeObjects(before: retention.startMs, cancellation)
    try session.removePages(of: published)
    try session.endRemoval(of: retention, cancellation)
  }

  // MARK: - A whole session

  /// Whether the end of a session is recorded, and no worker has to announce it any more.
  private func hasAnnouncedEnd(_ session: ObjectSession, _ head: ObjectSession.Head) throws -> Bool {
    try head.end != nil && !EndRequestObjects(objects: store.objects).isThere(session.id)
  }

  /// Asks the workers to end a session that goes as a whole once its end is announced.
  private func requestEnd(_ session: ObjectSession, _ head: ObjectSession.Head) throws {
    // A request that is there may be in work.
    guard head.end == nil, try !EndRequestObjects(objects: store.objects).isThere(session.id) else { return }
    _ = try store.requestEnd(EndRequest(session.id, .quiet))
  }

  /// Removes a session of which nothing is kept, and whose end is announced.
  ///
  /// - Parameter isTooOld: whether later batches are refused, if there is a reason for tombstones.
  /// - Returns: false if it has changed meanwhile.
  private func removeWhole(_ session: ObjectSession, _ head: ObjectSession.Head, _ isTooOld: Bool) throws -> Bool {
    let reason = isTooOld ? tombstoneReason : nil
    guard let tag = try session.forget(head, tombstoneReason: reason) else { return false }
    try session.removeForgotten(tag, reason, cancellation)
    try store.openSessions?.close(session.id)
    return true
  }
}

/// When the first segments of sessions were published, in unix milliseconds. For any thread.
private final class FirstPublications: Sendable {
  private let known = Mutex<[SessionID: (startMs: Int64, publishedMs: Int64)]>([:])

  /// - Parameter read: asks the store.
  func publishedMs(of id: SessionID, _ startMs: Int64, _ read: () throws -> Int64?) rethrows -> Int64? {
    if let first = known.withLock({ $0[id] }), first.startMs == startMs { return first.publishedMs }
    let publishedMs = try read()
    known.withLock { $0[id] = publishedMs.map { (startMs, $0) } }
    return publishedMs
  }

  /// Forgets all other sessions.
  func keep(_ sessions: some Sequence<SessionID>) {
    let kept = Set(sessions)
    known.withLock { $0 = $0.filter { kept.contains($0.key) } }
  }
}

extension ObjectSession {
  /// Returns the first segments, in order: at least so many, unless there are fewer.
  fileprivate func firstEntries(of published: Published, limit: Int) throws -> ArraySlice<SessionEntry> {
    var entries: [SessionEntry] = []
    for page in published.pages where entries.count < limit { entries += try self.entries(of: page) }
    return (entries.count < limit ? entries + published.index.entries : entries).prefix(limit)
  }

  /// Records that no object of removed segments is left.
  fileprivate func endRemoval(of retention: SessionRetention, _ cancellation: Cancellation) throws {
    try change(cancellation) { published, _ in
      guard published.retention?.startMs == retention.startMs else { return false }
      published.retention?.isRemoving = false
      return true
    }
  }
}
