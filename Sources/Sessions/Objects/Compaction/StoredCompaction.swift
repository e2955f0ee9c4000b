// Compaction of the sessions of an object store: what is old, or has ended, becomes packs of ten minutes. Several workers may do it at once,
// beside publishers. Each step writes packs, and then one head that names them, if it is unchanged. Readers with an earlier head find its
// objects for a week. A process may die before any request: the next one does the rest.

import Encoding
import FileSystem
import FrameBatches
import Synchronization

package struct StoredCompaction: Sendable {
  /// The age of a part of a session that goes on, for workers, in milliseconds.
  package static let ageMs: Int64 = 3_600_000
  /// Milliseconds between two passes, at least and for each list of the index: lists cost money.
  private static let (leastMs, eachListMs) = (600_000, 10_000)

  private let store: ObjectStore
  private let ageMs: Int64
  private let takesEnded: Bool
  private let shouldContinue: @Sendable () -> Bool
  private let heads: StoredHeads
  /// The heads of sessions that have nothing to compact, and no record of that.
  private let settled = SettledHeads()

  /// - Parameters:
  ///   - ageMs: segments that were published longer ago are compacted, in milliseconds.
  ///   - takesEnded: whether sessions that have ended are compacted, whatever their age.
  ///   - shouldContinue: asked between requests; if it returns false, the rest is left for the next pass.
  package init(
    of store: ObjectStore, ageMs: Int64, takesEnded: Bool, shouldContinue: @escaping @Sendable () -> Bool = { true }
  ) {
    (self.store, self.ageMs, self.takesEnded, self.shouldContinue) = (store, ageMs, takesEnded, shouldContinue)
    heads = StoredHeads(of: StoredSessions(store.objects, name: store.name), countsGaps: false)
  }

  /// The time from one pass to the next, in milliseconds.
  package var intervalMs: Int { max(Self.leastMs, Self.eachListMs * heads.lists) }

  private var cancellation: Cancellation { Cancellation { [shouldContinue] in !shouldContinue() } }

  private struct Pass {
    let nowMs: Int64
    let isDryRun: Bool
  }

  /// Compacts all sessions, and removes replaced objects whose time has come.
  ///
  /// - Parameters:
  ///   - nowMs: unix milliseconds.
  ///   - isDryRun: whether to change nothing and only report.
  package func run(nowMs: Int64 = WallClock.nowMs, isDryRun: Bool = false) -> CompactionReport {
    let pass = Pass(nowMs: nowMs, isDryRun: isDryRun)
    var report = CompactionReport()
    do {
      try heads.readAll(cancellation.check)
      let all = heads.published
      settled.keep(all.keys)
      for (id, totals) in all.sorted(by: { $0.key.description < $1.key.description }) {
        try cancellation.check()
        let tag = heads.tag(of: id)
        if totals.isCompact || settled.has(tag, of: id) { continue }
        if try compact(id, pass, &report) { settled.note(tag, of: id) }
      }
      if !isDryRun {
        let (count, failures) = try ReplacedObjects.removeDue(of: store, nowMs: nowMs, cancellation)
        report.removed = count
        report.failures += failures
      }
    } catch is Cancelled {
      // The next pass goes on.
    } catch {
      report.failures.append(error)
    }
    return report
  }

  /// Compacts some sessions.
  package func run(_ sessions: [SessionID], nowMs: Int64 = WallClock.nowMs) -> CompactionReport {
    var report = CompactionReport()
    for id in sessions where shouldContinue() {
      // A stop request ends it between two requests.
      _ = try? compact(id, Pass(nowMs: nowMs, isDryRun: false), &report)
    }
    return report
  }

  /// - Returns: whether there was nothing to do, and will be nothing until the session changes.
  /// - Throws: ``Cancelled``.
  private func compact(_ id: SessionID, _ pass: Pass, _ report: inout CompactionReport) throws -> Bool {
    var isWhole = false
    var compacted = CompactionReport.Compacted(id)
    defer { report.add(compacted) }
    let session = store.session(id)
    var packs = CompactedPacks(of: session, in: store.staging, nowMs: pass.nowMs, cancellation)
    do {
      var attempt = 0
      while try session.removingObjectsIfDeleted({ try step(session, &packs, pass, &isWhole, &compacted) }) {
        try cancellation.check()
        SegmentWriteConflict.pause(attempt)
        attempt = min(attempt + 1, 4)
      }
    } catch is SessionDeleted {
      // It has nothing to compact.
    } catch let error where !(error is Cancelled) {
      report.failures.append(error)
      return false
    }
    return isWhole && compacted.segments == 0
  }

  /// Compacts some segments of a session.
  ///
  /// - Parameter isWhole: set if all of it was looked at, whatever the ages of segments.
  /// - Returns: whether there may be more to do.
  private func step(
    _ session: ObjectSession, _ packs: inout CompactedPacks, _ pass: Pass, _ isWhole: inout Bool,
    _ report: inout CompactionReport.Compacted
  ) throws -> Bool {
    let head = try session.head()
    guard let published = head.published, !published.isCompact else { return false }
    if published.compaction?.lacksViews == true, !pass.isDryRun {
      try finishViews(session)
      return true
    }
    isWhole = try isWholeOld(session, published)
    let plan = try plan(session, published, isWhole: isWhole, pass)
    if plan.groups.isEmpty && !isWhole { return false }
    // Players of a live playlist of packs have read where their segments lie.
    if !plan.groups.isEmpty, !published.index.isComplete, try store.playlist(of: session).hasPacks() { return false }
    if pass.isDryRun {
      for group in plan.groups { report.add(group, packs: 1) }
      return false
    }
    var places: [Int64: PackPlace] = [:]
    for group in plan.groups {
      try cancellation.check()
      places.merge(try packs.places(of: group, head.generation)) { $1 }
    }
    // A short session needs no record that it has nothing to compact.
    if places.isEmpty, published.pages.isEmpty || plan.throughMs <= published.index.last.startMs { return false }
    guard try session.move(to: places, through: plan.throughMs, over: head, pass.nowMs) else { return true }
    for group in plan.groups {
      let packs = Set(group.entries.compactMap { places[$0.startMs]?.file }).count
      if packs > 0 { report.add(group, packs: packs) }
    }
    return true
  }

  /// Whether all segments are compacted, because the session has ended, or nothing was published for long.
  private func isWholeOld(_ session: ObjectSession, _ published: ObjectSession.Published) throws -> Bool {
    if takesEnded && published.index.isComplete { return true }
    let headAgeS = try session.objects.head(session.headKey)?.ageS
    return headAgeS.map { 1_000 * Int64($0) >= ageMs } ?? false
  }

  private func plan(
    _ session: ObjectSession, _ published: ObjectSession.Published, isWhole: Bool, _ pass: Pass
  ) throws -> CompactionPlan {
    let entries = try session.entriesToCompact(published)
    var publications = StoredPublications(of: session, from: entries[0].startMs, nowMs: pass.nowMs)
    return try CompactionPlan(entries, isWhole: isWhole, oldMs: isWhole ? nil : pass.nowMs - ageMs) { entry in
      try cancellation.check()
      return try publications.publishedMs(of: entry)
    }
  }

  /// Writes the views with the new packs, and then records that.
  private func finishViews(_ session: ObjectSession) throws {
    // If it changes meanwhile, other packs may have come.
    let head = try session.head()
    guard var published = head.published else { return }
    try session.updateViews(nil, nil, always: true)
    let playlist = store.playlist(of: session)
    if try playlist.hasPacks() { _ = try playlist.update(with: [:], releasedMs: .max, isMoved: true) }
    published.compaction?.lacksViews = false
    _ = try session.write(published, over: head, end: head.end)
  }
}

/// Tags of heads, by their sessions. For any thread.
private final class SettledHeads: Sendable {
  private let tags = Mutex<[SessionID: ObjectTag]>([:])

  func has(_ tag: ObjectTag?, of id: SessionID) -> Bool { tag != nil && tags.withLock { $0[id] } == tag }

  func note(_ tag: ObjectTag?, of id: SessionID) { tags.withLock { $0[id] = tag } }

  /// Forgets all other sessions.
  func keep(_ sessions: some Sequence<SessionID>) {
    let kept = Set(sessions)
    tags.withLock { $0 = $0.filter { kept.contains($0.key) } }
  }
}

extension ObjectSession {
  /// Returns the segments that compaction has not seen, with the pack before them, which may grow.
  fileprivate func entriesToCompact(_ published: Published) throws -> [SessionEntry] {
    guard let throughMs = published.compaction?.throughMs else { return try whole(published).entries }
    let entries = try entries(near: (throughMs - Pack.maximumMs)..<Int64.max, in: published)
    // The first pack may begin before.
    let whole = entries.drop { $0.pack.map { $0.startMs < entries[0].startMs } ?? false }
    return whole.isEmpty ? try self.whole(published).entries : Array(whole)
  }

  /// Writes a head that names segments in new packs.
  ///
  /// - Parameters:
  ///   - places: by the starts of the segments.
  ///   - throughMs: segments that start before need no further look.
  /// - Returns: false if the head has changed meanwhile.
  fileprivate func move(
    to places: [Int64: PackPlace], through throughMs: Int64, over head: Head, _ nowMs: Int64
  ) throws -> Bool {
    guard var next = head.published else { return false }
    var hasFiles = next.hasViews
    func moved(_ entry: SessionEntry) -> SessionEntry {
      guard let place = places[entry.startMs] else { return entry }
      if entry.pack == nil { hasFiles = true }
      var entry = entry
      entry.pack = place
      return entry
    }
    let (old, starts) = (next, places.keys.sorted())
    var pages: [(index: Int, entries: [SessionEntry])] = []
    for (index, page) in old.pages.enumerated() {
      let endMs = index + 1 < old.pages.count ? old.pages[index + 1].startMs : old.index.entries[0].startMs
      guard starts.contains(where: { page.startMs <= $0 && $0 < endMs }) else { continue }
      pages.append((index, try entries(of: page).map(moved)))
    }
    if !pages.isEmpty {
      let names = pages.flatMap { [old.pages[$0.index].file, Page.of($0.entries).page.file] }
      try ReplacedObjects(of: self).add(names, nowMs: nowMs)
    }
    for page in pages { next.pages.replaceSubrange(page.index...page.index, with: try sealed(page.entries)) }
    next.index = next.index.listing(next.index.entries.map(moved))
    let latest = places.values.max { $0.startMs < $1.startMs }
    next.compaction = CompactedPart(
      throughMs: throughMs, file: latest?.file ?? old.compaction?.file,
      publishedMs: max(old.compaction?.publishedMs ?? 0, places.values.map(\.publishedMs).max() ?? 0),
      lacksViews: !places.isEmpty && (hasFiles || old.compaction?.lacksViews == true))
    try watch?.tryWrites()
    return try write(next, over: head, end: head.end) != nil
  }
}
