// The passes of rolling retention over an object store. Several workers may make them at once.

import Encoding
import FileSystem
import FrameBatches

/// The removal of segments of stored sessions that were published too long ago.
package struct StoredRetention: Sendable {
  /// Maximum number of segments in one step.
  private static let maximumStep = 500

  private let store: ObjectStore
  private let ageMs: Int64
  private let shouldContinue: @Sendable () -> Bool

  /// - Parameters:
  ///   - ageMs: the maximum age of a segment since its publication, in milliseconds.
  ///   - shouldContinue: asked between requests; if it returns false, the rest is left for the next pass.
  package init(_ store: ObjectStore, ageMs: Int64, shouldContinue: @escaping @Sendable () -> Bool = { true }) {
    (self.store, self.ageMs, self.shouldContinue) = (store, ageMs, shouldContinue)
  }

  private var cancellation: Cancellation { Cancellation { [shouldContinue] in !shouldContinue() } }

  /// Removes what is too old, and finishes removals that were interrupted.
  package func run() -> RetentionReport {
    var report = RetentionReport()
    do {
      for id in try StoredSessions(store.objects, name: store.name).ids(below: ["index/"]) {
        try cancellation.check()
        do {
          try perform(on: id, &report)
        } catch is SessionDeleted {
          continue
        } catch let error where !(error is Cancelled) {
          report.failures.append(error)
        }
      }
    } catch is Cancelled {
      // The next pass goes on.
    } catch {
      report.failures.append(error)
    }
    return report
  }

  private func perform(on id: SessionID, _ report: inout RetentionReport) throws {
    let session = store.session(id)
    var removed = RemovedSegments(id)
    defer {
      if removed.segments > 0 || removed.isWhole { report.removed.append(removed) }
      if removed.isEnding { report.ending.insert(id) }
    }
    var goesOn = true
    while goesOn {
      try cancellation.check()
      let head = try session.head()
      guard let published = head.published else { return }
      if published.retention?.isRemoving == true { try finish(session, nil) }
      guard let first = try session.firstEntries(of: published, limit: 1).first,
        let age = try age(of: first, in: session), age >= ageMs
      else { return }
      if let lastAge = try self.age(of: published.index.last, in: session), lastAge >= ageMs {
        removed.isEnding = try !removeWhole(session, head, &removed)
        if !removed.isEnding { return }
      }
      goesOn = try step(session, published, &removed)
    }
  }

  /// Returns the time since a segment was published, in milliseconds; nil if the store does not tell it.
  private func age(of entry: SessionEntry, in session: ObjectSession) throws -> Int64? {
    try session.ageS(of: entry).map { 1_000 * Int64($0) }
  }

  /// Removes some first segments of a session.
  ///
  /// - Returns: whether there may be more to remove.
  private func step(
    _ session: ObjectSession, _ published: ObjectSession.Published, _ removed: inout RemovedSegments
  ) throws -> Bool {
    var last: (startMs: Int64, ageMs: Int64)?
    let first = try session.firstEntries(of: published, limit: Self.maximumStep)
    let entries = first.dropLast()
    var known: (packMs: Int64, ageMs: Int64)?
    for (entry, next) in zip(entries, first.dropFirst()) {
      try cancellation.check()
      let isKnown = entry.pack != nil && known?.packMs == entry.pack?.startMs
      let age = try isKnown ? known?.ageMs : self.age(of: entry, in: session)
      guard let age, age >= ageMs else { break }
      known = entry.pack.map { ($0.startMs, age) }
      // A pack goes as a whole.
      if let pack = entry.pack, pack.startMs == next.pack?.startMs { continue }
      last = (entry.startMs, age)
    }
    guard let last else { return false }
    let marker = try store.markers.add(session.id, known: nil)
    // Views that lack segments would be made from all pages of the index.
    if published.isLong { try session.updateViews(nil, store.events()) }
    // Read it now: workers may have published in the session while the ages were asked for.
    let head = try session.head()
    let seen = entries.prefix { $0.startMs <= last.startMs }
    let isSame = try head.published.map { try session.firstEntries(of: $0, limit: seen.count).elementsEqual(seen) }
    let publishedMs = WallClock.nowMs - last.ageMs
    guard isSame == true,
      let beginning = try session.removeFirst(through: last.startMs, from: head, publishedMs: publishedMs)
    else {
      try store.markers.remove(marker)
      return true
    }
    removed.add(beginning.removed)
    try finish(session, beginning)
    try store.markers.remove(marker)
    return last.startMs == entries.last?.startMs && entries.count + 1 == Self.maximumStep
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

  /// Removes a session of which nothing is kept. It is ended first, and goes once its end is announced.
  ///
  /// - Returns: false if it waits for that.
  private func removeWhole(
    _ session: ObjectSession, _ head: ObjectSession.Head, _ removed: inout RemovedSegments
  ) throws -> Bool {
    guard head.end != nil else {
      _ = try store.requestEnd(EndRequest(session.id, .quiet))
      return false
    }
    guard try !EndRequestObjects(objects: store.objects).isThere(session.id), let published = head.published else {
      return false
    }
    guard let tag = try session.forget(head) else { return false }
    removed.add(try session.whole(published).entries)
    removed.isWhole = true
    _ = try session.removeObjects(
      unlessChanged: true, while: { try store.objects.head(session.headKey)?.tag == tag }, cancellation)
    try store.openSessions?.close(session.id)
    return true
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
    var attempt = 0
    while true {
      try cancellation.check()
      SegmentWriteConflict.pause(attempt)
      attempt += 1
      let head = try head()
      guard var published = head.published, published.retention?.startMs == retention.startMs else { return }
      published.retention?.isRemoving = false
      if try write(published, over: head, end: head.end) != nil { return }
    }
  }
}
