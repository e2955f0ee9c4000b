// The views of a session in a directory, kept up to date with its segments' manifests: those that every session has, and those that
// are asked for. The views of a long session are written a few times a second at most. A marker is written first, so that the next
// worker updates them after a crash.

import Encoding
import FileSystem
import FrameBatches
import Glibc

/// Keeps the views of an output's sessions up to date with their manifests. For any thread; one for a process.
package final class SessionViews: Sendable {
  /// Maximum number of segments that views may lack.
  private static let maximumBehind = 200

  /// Maximum lag of views, in milliseconds. The views of a session of hours have megabytes, and are written less often.
  private static func lagMs(_ segments: Int) -> Int { segments < 4_000 ? 400 : 800 }

  /// Each session with a live playlist has a marker, so scans are frequent. A worker asks each second whether views are due.
  private static let timing = DeferredViews.Timing(
    scanMs: 1_000, removalMs: 60_000, nextRemovalMs: 60_000, countsScans: false)

  private let wanted: ViewKinds
  /// Whether this process announces ends.
  let announcesEnds: Bool
  /// Whether live playlists are made as windows, because first segments will be removed.
  private let isWindow: Bool
  private let deferred: DeferredViews
  private let wallClock: @Sendable () -> Int64
  private let shouldContinue: @Sendable () -> Bool

  /// - Parameters:
  ///   - wanted: written for every session; others are kept up to date if a session has them.
  ///   - announcesEnds: whether this process announces the ends of sessions.
  ///   - isWindow: whether live playlists are made as windows, because first segments will be removed.
  ///   - shouldContinue: asked between files; if it returns false, the rest is left to the next worker.
  ///   - clock: a monotonic clock, in milliseconds.
  ///   - wallClock: unix milliseconds.
  package init(
    _ wanted: ViewKinds = [], announcesEnds: Bool = false, isWindow: Bool = false,
    shouldContinue: @escaping @Sendable () -> Bool = { true },
    clock: @escaping @Sendable () -> Int = MonotonicClock.milliseconds,
    wallClock: @escaping @Sendable () -> Int64 = { WallClock.nowMs }
  ) {
    (self.wanted, self.announcesEnds, self.isWindow) = (wanted, announcesEnds, isWindow)
    self.shouldContinue = shouldContinue
    self.wallClock = wallClock
    deferred = DeferredViews(Self.timing, clock: clock)
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
      try Self.wasWritten(directory.path + "/" + IndexText.jsonFile, withinMs: lagMs)
    else { return false }
    let marker = try mark(directory)
    deferred.change(directory.session) { due, nowMs in due.wait(untilMs: nowMs + lagMs, marker) }
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
    let update = viewUpdate(of: directory, releasedMs: releasedMs, temporary: temporary)
    let (outcome, known) = try cache.flatMap { try update.add(new, to: $0) } ?? update.rebuild(wanted)
    // Mark before the cache is valid: a worker that finds it valid after a crash leaves the update to the marker.
    if let heldBack = outcome.heldBack { try mark(directory, heldBack) }
    known?.write(to: directory.path)
    if outcome.heldBack == nil { try unmark(directory) }
    return outcome.warnings
  }

  private func viewUpdate(of directory: SessionDirectory, releasedMs: Int64, temporary: String) -> ViewUpdate {
    ViewUpdate(
      directory: directory, releasedMs: releasedMs, temporary: temporary, nowMs: wallClock(), isWindow: isWindow
    ) { _, _ in
      if !self.shouldContinue() { throw Cancelled() }
    }
  }

  /// Takes first segments out of all files, while the segments' own files are still there. Mark the session before.
  ///
  /// - Parameter cache: the cache before, by which the views lack nothing; nil if there is none.
  /// - Returns: the cache after the segments' files are gone; nil if there is none.
  func removeFirst(
    _ removal: FirstSegments, from directory: SessionDirectory, _ cache: SessionIndexCache?, temporary: String
  ) throws -> SessionIndexCache? {
    let update = viewUpdate(of: directory, releasedMs: .min, temporary: temporary)
    guard let cache, try update.removeFirst(removal, from: cache.views) else {
      let (outcome, _) = try update.rebuild(wanted)
      if let heldBack = outcome.heldBack { try mark(directory, heldBack) }
      return nil
    }
    return cache.removing(before: removal.first.startMs, count: removal.removed.count)
  }

  /// Writes a marker, so that segments that are held back are listed in time even if this process dies.
  private func mark(_ directory: SessionDirectory, _ heldBack: HeldBack) throws {
    let marker = try mark(directory)
    let waitMs = deferred.change(directory.session) { due, nowMs in
      due.viewsMs = nil
      due.marker = marker
      due.succeed()
      due.hold(heldBack, atMs: nowMs)
      return due.firstMs - nowMs
    }
    try MarkerFiles(beside: directory).postpone(marker, byMs: waitMs)
  }

  /// Marks the views as outdated.
  @discardableResult
  func mark(_ directory: SessionDirectory) throws -> ViewMarker {
    try MarkerFiles(beside: directory).add(directory.session, known: deferred[directory.session]?.marker)
  }

  private func unmark(_ directory: SessionDirectory) throws {
    try MarkerFiles(beside: directory).remove(ViewMarker(session: directory.session))
    deferred.forget(directory.session)
  }

  // MARK: - Deferred updates

  /// The time until the next update is due, in milliseconds; nil if none is.
  package var dueInMs: Int? { deferred.dueInMs }

  /// Updates the views that are due, and those that a dead process left behind. Removes superseded files.
  ///
  /// - Parameter all: whether to update views that are not due, too. Then live playlists hold nothing back.
  /// - Returns: the updates that failed; they are retried later.
  package func flushPending(_ staging: Staging, all: Bool = false) -> [ViewUpdateFailure] {
    deferred.flush(Output(views: self, staging: staging), all: all)
  }

  private struct Output: DeferringStore {
    let views: SessionViews
    let staging: Staging

    var markers: MarkerFiles { MarkerFiles(output: staging.output) }

    func update(_ due: DueUpdate) throws {
      let directory = SessionDirectory(output: staging.output, session: due.session)
      do {
        try views.flush(directory, due, temporary: staging.temporaryFile())
      } catch is SessionDeleted {
        try views.unmark(directory)
      } catch is Cancelled where views.shouldContinue() {
        throw SessionHeld()
      }
    }

    func removeSuperseded() -> (failures: [ViewUpdateFailure], isComplete: Bool) {
      let lists = SupersededLists(output: staging.output, temporary: staging.temporaryFile())
      return (lists.removeDue(atMs: views.wallClock()), true)
    }
  }

  private func flush(_ directory: SessionDirectory, _ due: DueUpdate, temporary: String) throws {
    guard try DurableFile.isDirectory(directory.path) else { return try unmark(directory) }
    // A worker that publishes holds the lock for a moment; a stopped process holds it for ever.
    try directory.locked(.never.or(afterMs: (due.isLast ? 10 : 1) * 1_000)) {
      var cache = cache(of: directory)
      // At the end, check once more: the operator may have moved segments away.
      if due.isLast, let known = cache, try directory.publishedStarts().count != known.count { cache = nil }
      try update(
        directory, cache, releasedMs: due.isLast ? .max : due.releasedMs ?? .min, temporary: temporary)
    }
  }
}
