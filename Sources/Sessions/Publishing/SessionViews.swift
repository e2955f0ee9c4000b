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
  /// A marker older than this many seconds belongs to a dead process.
  private static let markS = 5
  /// The pause before a retry, in milliseconds.
  static let retryMs = 30_000
  /// Maximum number of segments that views may lack.
  private static let maximumBehind = 200

  /// Maximum lag of views, in milliseconds. The views of a session of hours have megabytes, and are written less often.
  private static func lagMs(_ segments: Int) -> Int { segments < 4_000 ? 400 : 800 }

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
  ///   - thumbnails: whether players have thumbnails of them.
  ///   - sentry: whether there is an event for Sentry beside each manifest.
  ///   - shouldContinue: asked between files; if it returns false, the rest is left to the next worker.
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

  /// Returns the cache of a session; nil if it is invalid, or the session lacks a view that we keep.
  func cache(of directory: SessionDirectory) -> SessionIndexCache? {
    SessionIndexCache.read(of: directory.path).flatMap { cache in
      (cache.hasEvents || !hasEvents) && (cache.hasHLS || !hasHLS) && (cache.hasThumbnails || !hasThumbnails)
        ? cache : nil
    }
  }

  /// Whether the update of the views may be deferred while segments are added. Then a marker is written.
  func deferUpdate(
    _ directory: SessionDirectory, _ cache: SessionIndexCache, by new: [PublishedSegment]
  ) throws -> Bool {
    let lagMs = Self.lagMs(cache.count)
    // A segment older than all cached ones would leave a hole in the cache.
    guard cache.behind.count + new.count <= Self.maximumBehind, cache.recent.count > cache.behind.count,
      new.allSatisfy({ $0.startMs > cache.recent[0] }),
      try Self.wasWritten(directory.path + "/" + SessionView.jsonFile, withinMs: lagMs)
    else { return false }
    try mark(directory)
    let dueMs = MonotonicClock.milliseconds() + lagMs
    behind.withLock { behind in
      if behind[directory.session]?.viewsMs == nil { behind[directory.session, default: Due()].viewsMs = dueMs }
    }
    return true
  }

  private static func wasWritten(_ path: String, withinMs limitMs: Int) throws -> Bool {
    var status = stat()
    try check("stat", path) { lstat(path, &status) }
    return (0..<Int64(limitMs)).contains(
      WallClock.nowMs - WallClock.unixMs(status.st_mtim.tv_sec, status.st_mtim.tv_nsec))
  }

  /// Records in the cache that the views lack the new segments.
  ///
  /// - Returns: warnings about them.
  func recordDeferred(
    _ new: [PublishedSegment], _ cache: SessionIndexCache, in directory: SessionDirectory
  ) -> [String] {
    cache.adding(new.map(\.startMs), areBehind: true).write(to: directory.path)
    return cache.hasEvents ? new.compactMap { SentryEvent.warning(of: $0, in: directory.session) } : []
  }

  /// Brings all files up to date.
  ///
  /// - Parameters:
  ///   - cache: the cache before `new` was added.
  ///   - releasedMs: a live playlist holds back no segment that starts by then.
  ///   - temporary: a file name to write under, on the same file system.
  /// - Returns: warnings about new files.
  @discardableResult
  package func update(
    _ directory: SessionDirectory, _ cache: SessionIndexCache? = nil, adding new: [PublishedSegment] = [],
    releasedMs: Int64 = .min, temporary: String
  ) throws -> [String] {
    let update = ViewUpdate(directory: directory, releasedMs: releasedMs, temporary: temporary) { _, _ in
      if !self.shouldContinue() { throw Cancelled() }
    }
    let outcome =
      try cache.flatMap { try update.add(new, to: $0) }
      ?? update.rebuild(events: hasEvents, hls: hasHLS, thumbnails: hasThumbnails)
    // Mark before the cache is valid: a worker that finds it valid after a crash leaves the update to the marker.
    if let heldBack = outcome.heldBack { try mark(directory, heldBack) }
    outcome.cache?.write(to: directory.path)
    if outcome.heldBack == nil { try unmark(directory) }
    return outcome.warnings
  }

  /// Writes a marker, so that segments that are held back are listed in time even if this process dies.
  private func mark(_ directory: SessionDirectory, _ heldBack: HLSPackage.HeldBack) throws {
    try mark(directory)
    let dueMs = behind.withLock { behind in
      var heldBack = heldBack
      // A later segment does not defer it further.
      if let known = behind[directory.session]?.heldBack, known.startMs == heldBack.startMs { heldBack = known }
      behind[directory.session] = Due(heldBack: heldBack)
      return heldBack.dueMs
    }
    try DirtySessionMarkers(beside: directory).postpone(
      directory.session, byMs: dueMs - MonotonicClock.milliseconds())
  }

  private func mark(_ directory: SessionDirectory) throws {
    let isOurs = behind.withLock { $0[directory.session] != nil }
    try DirtySessionMarkers(beside: directory).add(directory.session, isSynced: isOurs)
  }

  private func unmark(_ directory: SessionDirectory) throws {
    try DirtySessionMarkers(beside: directory).remove(directory.session)
    behind.withLock { _ = $0.removeValue(forKey: directory.session) }
  }

  // MARK: - Deferred updates

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
    let markers = DirtySessionMarkers(output: staging.output)
    let scans = nextScanMs.withLock { next in
      if !all && now < next { return false }
      next = now + Self.scanMs
      return true
    }
    let others = scans ? markers.sessions(dueForS: all ? nil : Self.markS, except: own.keys) : []
    due += others.map { (session: $0, isOurs: false, releasedMs: .max) }
    var failures: [ViewUpdateFailure] = []
    for (session, isOurs, releasedMs) in due {
      let directory = SessionDirectory(output: staging.output, session: session)
      do {
        try flush(directory, releasedMs: releasedMs, isLast: all, temporary: staging.temporaryFile())
      } catch {
        behind.withLock { behind in
          if isOurs { behind[session] = Due(viewsMs: now + Self.retryMs, heldBack: behind[session]?.heldBack) }
        }
        let isHeld = error is Cancelled && shouldContinue()
        failures.append(
          ViewUpdateFailure(session: session, error: isHeld ? SessionHeld() : error, isOurs: isOurs))
      }
    }
    if all { markers.tidyUp() }
    return failures
  }

  private func flush(
    _ directory: SessionDirectory, releasedMs: Int64, isLast: Bool, temporary: String
  ) throws {
    do {
      try flushLocked(directory, releasedMs: releasedMs, isLast: isLast, temporary: temporary)
    } catch is SessionDeleted {
      try unmark(directory)
    }
  }

  private func flushLocked(
    _ directory: SessionDirectory, releasedMs: Int64, isLast: Bool, temporary: String
  ) throws {
    guard try DurableFile.isDirectory(directory.path) else { return try unmark(directory) }
    // A worker that publishes holds the lock for a moment; a stopped process holds it for ever.
    let deadline = MonotonicClock.milliseconds() + (isLast ? 10 : 1) * 1_000
    func isLate() -> Bool { MonotonicClock.milliseconds() >= deadline }
    try directory.locked(isLate) {
      var cache = cache(of: directory)
      // At the end, check once more: the operator may have moved segments away.
      if isLast, let known = cache, try directory.publishedStarts().count != known.count { cache = nil }
      try update(directory, cache, releasedMs: releasedMs, temporary: temporary)
    }
  }
}

/// Another process holds the session's lock.
package struct SessionHeld: Error, CustomStringConvertible {
  package var description: String { "another process holds its lock" }
}
