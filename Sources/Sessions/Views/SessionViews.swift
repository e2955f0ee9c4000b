// The views of a session in a directory, kept up to date with its segments' manifests: those that every session has, and those that
// are asked for. The views of a long session are written a few times a second at most. A marker in `OUTPUT/.behind/` is written first, so that the next worker updates them after a crash.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import Synchronization

/// Keeps the views of an output's sessions up to date with their manifests. For any thread; one for a process.
package final class SessionViews: Sendable {
  /// A marker older than this many seconds belongs to a dead process.
  private static let markS = 5
  /// Maximum number of segments that views may lack.
  private static let maximumBehind = 200

  /// Maximum lag of views, in milliseconds. The views of a session of hours have megabytes, and are written less often.
  private static func lagMs(_ segments: Int) -> Int { segments < 4_000 ? 400 : 800 }

  /// The views that this process deferred.
  private let behind = Mutex<[SessionID: DueViews]>([:])
  /// The views that other processes left behind, and that cannot be updated now.
  private let failing = Mutex<[SessionID: DueViews]>([:])
  /// The time of the next scan for markers of other processes, in monotonic milliseconds. Each session with a live playlist has
  /// one.
  private let nextScanMs = Mutex(Int.min)
  private static let scanMs = 1_000
  /// The time of the next removal of superseded files.
  private let nextRemovalMs = Mutex(Int.min)
  private static let removalMs = 60_000
  /// The monotonic clock, and that of the day.
  private let clock: @Sendable () -> Int
  private let wallClock: @Sendable () -> Int64
  private let shouldContinue: @Sendable () -> Bool
  private let wanted: ViewKinds

  /// - Parameters:
  ///   - wanted: written for every session; others are kept up to date if a session has them.
  ///   - shouldContinue: asked between files; if it returns false, the rest is left to the next worker.
  ///   - clock: a monotonic clock, in milliseconds.
  ///   - wallClock: unix milliseconds.
  package init(
    _ wanted: ViewKinds = [], shouldContinue: @escaping @Sendable () -> Bool = { true },
    clock: @escaping @Sendable () -> Int = MonotonicClock.milliseconds,
    wallClock: @escaping @Sendable () -> Int64 = { WallClock.nowMs }
  ) {
    self.shouldContinue = shouldContinue
    self.clock = clock
    self.wallClock = wallClock
    self.wanted = wanted
  }

  // MARK: - In a locked session

  /// Returns the cache of a session; nil if it is invalid, or the session lacks a view that we keep.
  func cache(of directory: SessionDirectory) -> SessionIndexCache? {
    SessionIndexCache.read(of: directory.path).flatMap { $0.views.isSuperset(of: wanted) ? $0 : nil }
  }

  /// Whether the update of the views may be deferred while segments are added. Then a marker is written.
  func deferUpdate(
    _ directory: SessionDirectory, _ cache: SessionIndexCache, by new: [PublishedSegment]
  ) throws -> Bool {
    let lagMs = Self.lagMs(cache.count)
    // A segment older than all cached ones would leave a hole in the cache.
    guard cache.behind.count + new.count <= Self.maximumBehind, cache.recent.count > cache.behind.count,
      new.allSatisfy({ $0.startMs > cache.recent[0] }),
      try Self.wasWritten(directory.path + "/" + IndexView.jsonFile, withinMs: lagMs)
    else { return false }
    try mark(directory)
    let dueMs = clock() + lagMs
    behind.withLock { behind in
      if behind[directory.session]?.viewsMs == nil { behind[directory.session, default: DueViews()].viewsMs = dueMs }
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
    return ViewList.all.filter { cache.views.contains($0.kind) }
      .flatMap { $0.warnings(of: new, in: directory.session) }
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
    let update = ViewUpdate(
      directory: directory, releasedMs: releasedMs, temporary: temporary, nowMs: wallClock()
    ) { _, _ in
      if !self.shouldContinue() { throw Cancelled() }
    }
    let (outcome, known) = try cache.flatMap { try update.add(new, to: $0) } ?? update.rebuild(wanted)
    // Mark before the cache is valid: a worker that finds it valid after a crash leaves the update to the marker.
    if let heldBack = outcome.heldBack { try mark(directory, heldBack) }
    known?.write(to: directory.path)
    if outcome.heldBack == nil { try unmark(directory) }
    return outcome.warnings
  }

  /// Writes a marker, so that segments that are held back are listed in time even if this process dies.
  private func mark(_ directory: SessionDirectory, _ heldBack: HeldBack) throws {
    try mark(directory)
    let nowMs = clock()
    let dueMs = behind.withLock { behind in
      var due = behind[directory.session] ?? DueViews()
      due.viewsMs = nil
      due.succeed()
      due.hold(heldBack, atMs: nowMs)
      behind[directory.session] = due
      return due.firstMs
    }
    try DirtySessionMarkers(beside: directory).postpone(directory.session, byMs: dueMs - nowMs)
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
    behind.withLock { $0.values.map(\.firstMs).min() }.map { max(0, $0 - clock()) }
  }

  /// Updates the views that are due, and those that a dead process left behind. Removes superseded files.
  ///
  /// - Parameter all: whether to update views that are not due, too. Then live playlists hold nothing back.
  /// - Returns: the updates that failed; they are retried later.
  package func flushPending(_ staging: Staging, all: Bool = false) -> [ViewUpdateFailure] {
    let now = clock()
    let own = behind.withLock { $0 }
    var due = own.filter { all || now >= $0.value.firstMs }.map { session, due in
      (session: session, isOurs: true, releasedMs: all ? .max : due.releasedMs(atMs: now) ?? .min)
    }
    let markers = DirtySessionMarkers(output: staging.output)
    if isDue(nextScanMs, everyMs: Self.scanMs, all, now) {
      let waiting = failing.withLock { $0.filter { !all && now < $0.value.firstMs } }
      let others = markers.sessions(
        dueForS: all ? nil : Self.markS, except: Array(own.keys) + Array(waiting.keys))
      // Another process may have updated some meanwhile.
      failing.withLock { failing in failing = failing.filter { waiting[$0.key] != nil || others.contains($0.key) } }
      due += others.map { (session: $0, isOurs: false, releasedMs: .max) }
    }
    var failures: [ViewUpdateFailure] = []
    for (session, isOurs, releasedMs) in due {
      let directory = SessionDirectory(output: staging.output, session: session)
      do {
        try flush(directory, releasedMs: releasedMs, isLast: all, temporary: staging.temporaryFile())
        if !isOurs { failing.withLock { _ = $0.removeValue(forKey: session) } }
      } catch {
        let failedMs = clock()
        if isOurs {
          behind.withLock { $0[session]?.fail(atMs: failedMs) }
        } else {
          failing.withLock { $0[session, default: DueViews(viewsMs: failedMs)].fail(atMs: failedMs) }
        }
        let isHeld = error is Cancelled && shouldContinue()
        failures.append(
          ViewUpdateFailure(session: session, error: isHeld ? SessionHeld() : error, isOurs: isOurs))
      }
    }
    if all { markers.tidyUp() }
    if isDue(nextRemovalMs, everyMs: Self.removalMs, all, now) {
      failures += removeSuperseded(SupersededLists(output: staging.output, temporary: staging.temporaryFile()))
    }
    return failures
  }

  private func isDue(_ nextMs: borrowing Mutex<Int>, everyMs: Int, _ all: Bool, _ nowMs: Int) -> Bool {
    nextMs.withLock { next in
      if !all && nowMs < next { return false }
      next = nowMs + everyMs
      return true
    }
  }

  /// Removes files that no playlist has named for some minutes, of all sessions.
  private func removeSuperseded(_ lists: SupersededLists) -> [ViewUpdateFailure] {
    var failures: [ViewUpdateFailure] = []
    for session in lists.sessions() {
      do {
        try lists.removeDue(of: session, atMs: wallClock())
      } catch is SessionHeld {
        // Later.
      } catch {
        failures.append(ViewUpdateFailure(session: session, error: error, isOurs: false, isOfRemoval: true))
      }
    }
    lists.tidyUp()
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
