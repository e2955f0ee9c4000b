// The views that a store does not write at once: when each is updated, in a directory as in an object store. Views of a long
// session lag, a live playlist holds segments back, failed updates are retried, and what a dead process left behind is found by its
// markers. How views and markers are written is the store's business.

import FileSystem
import FrameBatches
import Synchronization

/// A store that defers views.
protocol DeferringStore {
  associatedtype Markers: ViewMarkers
  var markers: Markers { get }

  /// Brings a session's views up to date, and removes the marker unless segments are held back.
  func update(_ due: DueUpdate) throws

  /// Removes files that no playlist has named for some minutes, of all sessions.
  ///
  /// - Returns: `isComplete` is false if files are left for a call that comes soon.
  func removeSuperseded() -> (failures: [ViewUpdateFailure], isComplete: Bool)
}

/// An update of a session's views that is due.
struct DueUpdate {
  let session: SessionID
  /// The marker of another process; nil if this process deferred the update.
  var abandoned: ViewMarker?
  /// Whether all views are due; else only segments that were held back.
  var isOfAll = true
  /// Views hold back no segment that starts by then, in unix milliseconds; nil if none is due.
  var releasedMs: Int64?
  /// Whether the process ends after it.
  let isLast: Bool
}

/// The schedule of a store's deferred views. For any thread; one for a store and process.
final class DeferredViews: Sendable {
  /// Intervals in milliseconds.
  struct Timing: Sendable {
    /// Between scans for markers of other processes.
    let scanMs: Int
    /// Between removals of superseded files, and after one that left some.
    let removalMs: Int
    let nextRemovalMs: Int
    /// Whether ``DeferredViews/dueInMs`` counts both; else the store's worker asks often enough.
    let countsScans: Bool
  }

  private struct State {
    /// The views that this process deferred.
    var own: [SessionID: DueViews] = [:]
    /// The views that other processes left behind, and that cannot be updated now.
    var failing: [SessionID: DueViews] = [:]
    /// Monotonic milliseconds.
    var nextScanMs = Int.min
    var nextRemovalMs = Int.min
  }

  private let state = Mutex(State())
  private let timing: Timing
  /// A monotonic clock, in milliseconds.
  private let clock: @Sendable () -> Int

  init(_ timing: Timing, clock: @escaping @Sendable () -> Int) {
    self.timing = timing
    self.clock = clock
  }

  /// Returns what this process deferred of a session; nil if nothing.
  subscript(session: SessionID) -> DueViews? { state.withLock { $0.own[session] } }

  /// Changes what this process deferred of a session.
  func change<R>(_ session: SessionID, _ body: (inout DueViews, _ nowMs: Int) -> R) -> R {
    let nowMs = clock()
    return state.withLock { state in
      var due = state.own[session] ?? DueViews()
      defer { state.own[session] = due.isEmpty ? nil : due }
      return body(&due, nowMs)
    }
  }

  /// Records that a session has no deferred views.
  func forget(_ session: SessionID) { state.withLock { state in state.own[session] = nil } }

  /// The time until the next update is due, in milliseconds; nil if none is.
  var dueInMs: Int? {
    let firstMs = state.withLock { state in
      let own = state.own.values.map(\.firstMs).min()
      return timing.countsScans ? min(own ?? .max, state.nextScanMs, state.nextRemovalMs) : own
    }
    let nowMs = clock()
    return firstMs.map { $0 > nowMs ? $0 - nowMs : 0 }
  }

  /// Updates the views that are due, and those that a dead process left behind. Removes superseded files.
  ///
  /// - Parameter all: whether to update views that are not due, too. Then nothing is held back.
  /// - Returns: the updates that failed; they are retried later.
  func flush(_ store: some DeferringStore, all: Bool) -> [ViewUpdateFailure] {
    let nowMs = clock()
    var failures: [ViewUpdateFailure] = []
    for (session, due) in state.withLock({ $0.own }) where all || nowMs >= due.firstMs {
      let update = DueUpdate(
        session: session, isOfAll: all || nowMs >= due.viewsMs ?? .max,
        releasedMs: due.releasedMs(atMs: all ? .max : nowMs), isLast: all)
      failures += perform(update, in: store)
    }
    if isDue(\.nextScanMs, everyMs: timing.scanMs, all, nowMs) {
      failures += updateAbandoned(in: store, all: all, nowMs)
    }
    if all { store.markers.tidyUp() }
    if isDue(\.nextRemovalMs, everyMs: timing.removalMs, all, nowMs) {
      let (failed, isComplete) = store.removeSuperseded()
      failures += failed
      if !isComplete {
        let nextMs = clock() + timing.nextRemovalMs
        state.withLock { $0.nextRemovalMs = nextMs }
      }
    }
    return failures
  }

  private func isDue(
    _ next: WritableKeyPath<State, Int> & Sendable, everyMs: Int, _ all: Bool, _ nowMs: Int
  ) -> Bool {
    state.withLock { state in
      if !all && nowMs < state[keyPath: next] { return false }
      state[keyPath: next] = nowMs + everyMs
      return true
    }
  }

  /// Updates the views that other processes left behind.
  private func updateAbandoned(in store: some DeferringStore, all: Bool, _ nowMs: Int) -> [ViewUpdateFailure] {
    let (own, waiting) = state.withLock { state in
      (state.own.filter { $0.value.marker != nil }, state.failing.filter { !all && nowMs < $0.value.firstMs })
    }
    let abandoned = store.markers.abandoned(all: all, except: Set(own.keys).union(waiting.keys))
    // Another process may have updated some meanwhile.
    let found = Set(abandoned.map(\.session)).union(waiting.keys)
    state.withLock { state in state.failing = state.failing.filter { found.contains($0.key) } }
    var failures: [ViewUpdateFailure] = []
    // A thread that publishes may have marked one for this process meanwhile.
    for marker in abandoned where self[marker.session]?.marker == nil {
      let update = DueUpdate(session: marker.session, abandoned: marker, releasedMs: .max, isLast: all)
      failures += perform(update, in: store)
    }
    return failures
  }

  /// - Returns: the failure, if there is one.
  private func perform(_ due: DueUpdate, in store: some DeferringStore) -> [ViewUpdateFailure] {
    let isOurs = due.abandoned == nil
    do {
      try store.update(due)
      state.withLock { state in
        if isOurs { state.own[due.session]?.succeed() } else { state.failing[due.session] = nil }
      }
      return []
    } catch {
      let failedMs = clock()
      state.withLock { state in
        if isOurs {
          state.own[due.session]?.fail(atMs: failedMs)
        } else {
          state.failing[due.session, default: DueViews(viewsMs: failedMs)].fail(atMs: failedMs)
        }
      }
      return [ViewUpdateFailure(due.session, isOurs ? .ownViews : .abandonedViews, error)]
    }
  }
}
