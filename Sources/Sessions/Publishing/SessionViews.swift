// The views of a session, kept up to date with its segments' manifests: `session.json`, `session.ffconcat` and, where they are
// asked for, the events for Sentry, `hls/` and `thumbnails/`. The views of a long session are written a few times a second at
// most. A marker in `OUTPUT/.behind/` is written first, so that the next worker updates them after a crash.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import Synchronization

/// Keeps the views of an output's sessions up to date with their manifests. For any thread; one for a process.
package final class SessionViews: Sendable {
  /// Maximum lag of views, in milliseconds.
  package static let lagMs = 400
  /// A marker older than this many seconds belongs to a dead process.
  private static let markS = 5
  /// The pause before a retry, in milliseconds.
  static let retryMs = 30_000
  /// Maximum number of segments that views may lack.
  private static let most = 200

  /// The due times of a session's views that this process deferred, in monotonic milliseconds.
  private struct Due {
    /// All views.
    var viewsMs: Int?
    /// The segments that its live playlist holds back.
    var heldBack: HLSPackage.HeldBack?

    /// The earlier of the two.
    var firstMs: Int { min(viewsMs ?? .max, heldBack?.dueMs ?? .max) }
  }

  private let behind = Mutex<[SessionID: Due]>([:])
  /// The time of the next scan for markers of other processes, in monotonic milliseconds. Each session with a live playlist has
  /// one.
  private let nextScanMs = Mutex(0)
  private static let scanMs = 1_000
  private let shouldContinue: @Sendable () -> Bool
  private let hasHLS: Bool
  private let hasThumbnails: Bool
  private let hasEvents: Bool

  /// - Parameters:
  ///   - hls: whether sessions can be played while they grow.
  ///   - thumbnails: whether players have their pictures in small.
  ///   - sentry: whether there is an event for Sentry beside each manifest.
  ///   - goesOn: asked between files where there are many to make; when it says no, that is left to later.
  package init(
    hls: Bool = false, thumbnails: Bool = false, sentry: Bool = false,
    shouldContinue: @escaping @Sendable () -> Bool = { true }
  ) {
    self.shouldContinue = shouldContinue
    hasHLS = hls
    hasThumbnails = thumbnails
    hasEvents = sentry
  }

  // MARK: - In a locked session

  /// The cached facts of a session; nil where they are not enough for what we keep.
  package func note(of directory: SessionDirectory) -> SessionIndexCache? {
    SessionIndexCache.read(of: directory.path).flatMap { note in
      (note.hasEvents || !hasEvents) && (note.hasHLS || !hasHLS) && (note.hasThumbnails || !hasThumbnails)
        ? note : nil
    }
  }

  /// Whether the update of the views may be deferred while segments are added. Then a marker is written.
  func deferUpdate(_ directory: SessionDirectory, _ note: SessionIndexCache, by new: [PublishedSegment]) throws -> Bool
  {
    // A segment older than all cached ones would leave a hole in the cache.
    guard note.behind.count + new.count <= Self.most, note.recent.count > note.behind.count,
      new.allSatisfy({ $0.startMs > note.recent[0] }),
      try Self.wasWrittenJustNow(directory.path + "/" + SessionView.jsonFile)
    else { return false }
    try mark(directory)
    let dueMs = MonotonicClock.milliseconds() + Self.lagMs
    behind.withLock { behind in
      if behind[directory.session]?.viewsMs == nil { behind[directory.session, default: Due()].viewsMs = dueMs }
    }
    return true
  }

  /// Records in the cache that the views lack the new segments.
  ///
  /// - Returns: warnings about them.
  package func leave(_ new: [PublishedSegment], behind note: SessionIndexCache, in directory: SessionDirectory)
    -> [String]
  {
    note.adding(new.map(\.startMs), areBehind: true).write(to: directory.path)
    return note.hasEvents ? warnings(of: new, in: directory) : []
  }

  /// Brings all files up to date.
  ///
  /// - Parameters:
  ///   - note: the cache before `new` was added.
  ///   - releasedMs: a live playlist holds back no segment that starts by then.
  ///   - temporary: a file name to write under, on the same file system.
  /// - Returns: warnings about new files.
  @discardableResult
  package func update(
    _ directory: SessionDirectory, _ note: SessionIndexCache? = nil, adding new: [PublishedSegment] = [],
    releasedMs: Int64 = .min, temporary: String
  ) throws -> [String] {
    var update = Update(directory, releasedMs: releasedMs, temporary: temporary)
    let warnings: [String]
    if let note, let added = try add(new, to: note, &update) {
      warnings = added
    } else {
      warnings = try rebuild(&update)
    }
    if update.heldBack == nil { try unmark(directory) }
    return warnings
  }

  /// One update of a session's views.
  private struct Update {
    let directory: SessionDirectory
    let releasedMs: Int64
    let temporary: String
    /// The segments that the live playlist holds back; nil where it lists all.
    var heldBack: HLSPackage.HeldBack?

    init(_ directory: SessionDirectory, releasedMs: Int64, temporary: String) {
      self.directory = directory
      self.releasedMs = releasedMs
      self.temporary = temporary
    }

    var playlist: HLSPackage {
      HLSPackage(path: directory.path + "/" + HLSPackage.directory, temporary: temporary)
    }
  }

  /// Writes a marker, so that segments that are held back are listed in time even if this process dies.
  private func note(_ outcome: HLSPackage.Outcome, of update: inout Update) throws {
    guard var heldBack = outcome.heldBack else { return }
    let directory = update.directory
    try mark(directory)
    behind.withLock { behind in
      // A later segment does not defer it further.
      if let known = behind[directory.session]?.heldBack, known.startMs == heldBack.startMs { heldBack = known }
      behind[directory.session] = Due(heldBack: heldBack)
    }
    try DirtySessionMarkers(beside: directory).postpone(
      directory.session, byMs: heldBack.dueMs - MonotonicClock.milliseconds())
    update.heldBack = heldBack
  }

  /// Adds the segments that the views lack.
  ///
  /// - Parameter note: the cache before `new` was added.
  /// - Returns: warnings about the new segments; nil if all manifests are needed.
  private func add(
    _ new: [PublishedSegment], to note: SessionIndexCache, _ update: inout Update
  ) throws -> [String]? {
    let (directory, temporary) = (update.directory, update.temporary)
    if note.behind.isEmpty && new.isEmpty && !note.hasHLS { return [] }
    var read = Dictionary(uniqueKeysWithValues: new.map { ($0.startMs, $0) })
    func segment(_ startMs: Int64) throws -> PublishedSegment {
      if let known = read[startMs] { return known }
      let segment = try directory.segment(startMs)
      read[startMs] = segment
      return segment
    }
    let starts = (note.recent + new.map(\.startMs)).sorted()
    let behind = Set(note.behind + new.map(\.startMs))
    let told = starts.filter { !behind.contains($0) }
    let views = [SessionView.jsonFile, SessionView.scriptFile].map { directory.path + "/" + $0 }
    guard let last = told.last, case let first = behind.min() ?? .max, told[0] < first,
      !(note.hasHLS || note.hasThumbnails) || last < first,
      let json = try DurableFile.contents(of: views[0], limit: SessionView.maximumBytes),
      let script = try DurableFile.contents(of: views[1], limit: SessionView.maximumBytes),
      let (view, kept) = try SessionView.extending(
        json: json, script: script, of: directory.session, to: starts, { try segment($0).entry })
    else { return nil }
    if behind.isEmpty {
      // Only a live playlist may have something to add.
      return try extend(starts, segment, sessionStartMs: view.startMs, &update) ? [] : nil
    }
    let added = try starts[kept...].map(segment)
    if note.hasEvents {
      let firstOrdinal = note.count + new.count - added.count
      for (index, segment) in added.enumerated() {
        let event = SentryEvent(segment, ordinal: firstOrdinal + index)
        try write(event.text, to: directory.path + "/" + SegmentName.event(segment.startMs), temporary: temporary)
      }
    }
    for (name, bytes) in view.files {
      try DurableFile.replace(directory.path + "/" + name, bytes, temporary: temporary)
    }
    try Directory(opening: directory.path).sync()
    if note.hasHLS, try !extend(starts, segment, sessionStartMs: view.startMs, &update) { return nil }
    if note.hasThumbnails {
      let isExtended = try ThumbnailPackage(of: directory, temporary: temporary).extend(
        by: added, after: segment(last), sessionStartMs: view.startMs, from: directory)
      if !isExtended { return nil }
    }
    note.adding(new.map(\.startMs), areBehind: false).write(to: directory.path)
    return note.hasEvents ? warnings(of: new, in: directory) : []
  }

  /// Adds the segments that a live playlist lacks.
  ///
  /// - Parameter starts: of the session's last segments, in order.
  /// - Returns: false if all manifests are needed.
  private func extend(
    _ starts: [Int64], _ segment: (Int64) throws -> PublishedSegment, sessionStartMs: Int64, _ update: inout Update
  ) throws -> Bool {
    guard let listed = try update.playlist.lastStart(), let index = starts.lastIndex(of: listed) else { return false }
    let outcome = try update.playlist.extend(
      by: starts[index...].map(segment), sessionStartMs: sessionStartMs, releasedMs: update.releasedMs,
      from: update.directory)
    guard let outcome else { return false }
    try note(outcome, of: &update)
    return true
  }

  /// Rebuilds all views from the manifests.
  private func rebuild(_ update: inout Update) throws -> [String] {
    let (directory, temporary) = (update.directory, update.temporary)
    let entries = try Directory(opening: directory.path, followingLinks: false).entries()
    let segments = try entries.compactMap { SegmentName.start(ofManifest: $0.name) }.sorted().map(directory.segment)
    // Before session.json, so that readers of a segment there find its event, too.
    let events = try updateEvents(entries, of: segments, in: directory, temporary: temporary)
    let hls = directory.path + "/" + HLSPackage.directory
    guard let view = SessionView(session: directory.session, segments: segments) else {
      for name in [SessionView.jsonFile, SessionView.scriptFile] { unlink(directory.path + "/" + name) }
      for name in [HLSPackage.directory, ThumbnailPackage.directory] {
        try DurableFile.removeTree(directory.path + "/" + name)
      }
      return []
    }
    for (name, bytes) in view.files { try write(bytes, to: directory.path + "/" + name, temporary: temporary) }
    try Directory(opening: directory.path).sync()
    // Every worker keeps existing views up to date.
    let isPlayable = try hasHLS || DurableFile.isDirectory(hls)
    if isPlayable {
      try note(
        update.playlist.update(segments, releasedMs: update.releasedMs, from: directory, progress: proceed),
        of: &update)
    }
    let isPreviewed =
      try hasThumbnails || DurableFile.isDirectory(directory.path + "/" + ThumbnailPackage.directory)
    if isPreviewed {
      try ThumbnailPackage(of: directory, temporary: temporary).update(segments, from: directory, progress: proceed)
    }
    let recent = segments.suffix(SessionIndexCache.recentCount).map(\.startMs)
    // Videos that the cache does not list do not exist.
    let starts = Set(segments.map(\.startMs))
    guard entries.allSatisfy({ SegmentName.start(ofVideo: $0.name).map(starts.contains) ?? true }) else {
      return warnings(of: events ?? [], in: directory)
    }
    let note = SessionIndexCache(
      count: segments.count, recent: recent, behind: [], hasEvents: events != nil, hasHLS: isPlayable,
      hasThumbnails: isPreviewed)
    note.write(to: directory.path)
    return warnings(of: events ?? [], in: directory)
  }

  private func proceed(_ done: Int, of total: Int) throws { if !shouldContinue() { throw Cancelled() } }

  /// Warnings about segments whose events are new.
  private func warnings(of new: [PublishedSegment], in directory: SessionDirectory) -> [String] {
    new.compactMap { SentryEvent.warning(of: $0, in: directory.session) }
  }

  /// Writes missing and outdated events.
  ///
  /// - Returns: the segments that had none; nil where events are not kept.
  private func updateEvents(
    _ entries: [Directory.Entry], of segments: [PublishedSegment], in directory: SessionDirectory, temporary: String
  ) throws -> [PublishedSegment]? {
    let present = Set(entries.filter { $0.kind == .file }.compactMap { SegmentName.start(ofEvent: $0.name) })
    // Every worker keeps existing events up to date.
    guard hasEvents || !present.isEmpty else { return nil }
    for (name, text) in SentryEvent.files(of: segments) {
      try write(text, to: directory.path + "/" + name, temporary: temporary)
    }
    // Remove events of segments that were rolled back. Do this last: existing events tell the next worker that events are wanted.
    for start in present.subtracting(segments.map(\.startMs)) {
      let file = directory.path + "/" + SegmentName.event(start)
      try check("unlink", file) { unlink(file) }
    }
    return segments.filter { !present.contains($0.startMs) }
  }

  private func write(_ bytes: [UInt8], to path: String, temporary: String) throws {
    if try DurableFile.contents(of: path, limit: bytes.count) == bytes { return }
    try DurableFile.replace(path, bytes, temporary: temporary)
  }

  private static func wasWrittenJustNow(_ path: String) throws -> Bool {
    var status = stat()
    try check("stat", path) { lstat(path, &status) }
    return (0..<Int64(lagMs)).contains(
      WallClock.nowMs - WallClock.unixMs(status.st_mtim.tv_sec, status.st_mtim.tv_nsec))
  }

  // MARK: - Catching up

  /// The time until the next update is due, in milliseconds; nil if none is.
  package var dueInMs: Int? {
    behind.withLock { $0.values.map(\.firstMs).min() }.map { max(0, $0 - MonotonicClock.milliseconds()) }
  }

  /// Updates the views that are due, and those that a dead process left behind.
  ///
  /// - Parameter all: whether to update views that are not due, too. Then live playlists hold nothing back.
  /// - Returns: the updates that failed; they are retried later.
  package func flushPending(_ staging: Staging, all: Bool = false) -> [ViewUpdateFailure] {
    let now = MonotonicClock.milliseconds()
    let own = behind.withLock { $0 }
    var due = own.filter { all || now >= $0.value.firstMs }.map { session, due in
      let released = due.heldBack.flatMap { now >= $0.dueMs ? $0.lastMs : nil }
      return (session: session, isOurs: true, releasedMs: all ? .max : released ?? .min)
    }
    let marks = DirtySessionMarkers(output: staging.output)
    let scans = nextScanMs.withLock { next in
      if !all && now < next { return false }
      next = now + Self.scanMs
      return true
    }
    let others = scans ? marks.sessions(dueForS: all ? nil : Self.markS, except: own.keys) : []
    due += others.map { (session: $0, isOurs: false, releasedMs: .max) }
    var failures: [ViewUpdateFailure] = []
    for (session, isOurs, releasedMs) in due {
      let directory = SessionDirectory(output: staging.output, session: session)
      // A worker that publishes holds the lock for a moment; a stopped process holds it for ever.
      let deadline = MonotonicClock.milliseconds() + (all ? 10 : 1) * 1_000
      do {
        if try DurableFile.isDirectory(directory.path) {
          func isLate() -> Bool { MonotonicClock.milliseconds() >= deadline }
          try directory.locked(isLate) {
            var note = note(of: directory)
            // At the end, check once more: the operator may have moved segments away.
            if all, let noted = note, try directory.publishedStarts().count != noted.count { note = nil }
            try update(directory, note, releasedMs: releasedMs, temporary: staging.temporaryFile())
          }
        } else {
          try unmark(directory)
        }
      } catch {
        behind.withLock { behind in
          if isOurs { behind[session] = Due(viewsMs: now + Self.retryMs, heldBack: behind[session]?.heldBack) }
        }
        let isHeld = error is Cancelled && shouldContinue()
        failures.append(
          ViewUpdateFailure(session: session, error: isHeld ? SessionHeld() : error, isOurs: isOurs))
      }
    }
    if all { marks.tidyUp() }
    return failures
  }

  private func mark(_ directory: SessionDirectory) throws {
    let isOurs = behind.withLock { $0[directory.session] != nil }
    try DirtySessionMarkers(beside: directory).add(directory.session, isSynced: isOurs)
  }

  private func unmark(_ directory: SessionDirectory) throws {
    try DirtySessionMarkers(beside: directory).remove(directory.session)
    behind.withLock { _ = $0.removeValue(forKey: directory.session) }
  }
}

/// Another process holds the session's lock.
package struct SessionHeld: Error, CustomStringConvertible {
  package var description: String { "somebody else holds its lock" }
}

extension SessionIndexCache {
  /// After these, which have just been published.
  fileprivate func adding(_ starts: [Int64], areBehind: Bool) -> SessionIndexCache {
    var note = self
    note.count += starts.count
    note.behind = areBehind ? (behind + starts).sorted() : []
    // Keep all segments that the views lack, and one that they have.
    let all = (recent + starts).sorted()
    note.recent = all.suffix(max(SessionIndexCache.recentCount, note.behind.count + 1))
    return note
  }
}
