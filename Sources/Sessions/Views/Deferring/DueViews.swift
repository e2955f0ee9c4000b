// When this process updates the views of a session that it deferred, or whose update failed. All times are monotonic milliseconds.
// Pure, but for the jitter of retries.

import FileSystem

struct DueViews {
  /// The due time of all views.
  var viewsMs: Int?
  /// The session's marker, if this process wrote it.
  var marker: ViewMarker?
  /// The segments that the live playlist holds back, and when it lists them anyway.
  private(set) var heldBack: (segments: HeldBack, dueMs: Int)?
  /// Failed updates in a row, and the time before which there is no other.
  private var failures = 0
  private var retryMs = Int.min

  init(viewsMs: Int? = nil) { self.viewsMs = viewsMs }

  var isEmpty: Bool { viewsMs == nil && heldBack == nil && marker == nil }

  /// The time of the next update.
  var firstMs: Int { max(min(viewsMs ?? .max, heldBack?.dueMs ?? .max), retryMs) }

  /// Defers all views of a session that was marked. One more batch does not defer them further.
  mutating func wait(untilMs dueMs: Int, _ marker: ViewMarker) {
    viewsMs = viewsMs ?? dueMs
    self.marker = marker
  }

  /// Sets the segments that the playlist holds back. A later segment does not defer the first one further.
  mutating func hold(_ new: HeldBack?, atMs nowMs: Int) {
    if let new, heldBack?.segments.startMs == new.startMs { return }
    heldBack = new.map { ($0, nowMs + $0.waitMs) }
  }

  /// Returns the start of the last segment that the playlist need not hold back any more, in unix milliseconds.
  func releasedMs(atMs nowMs: Int) -> Int64? { heldBack.flatMap { nowMs >= $0.dueMs ? $0.segments.lastMs : nil } }

  /// Records that an update failed. The next one waits, longer with each failure in a row.
  mutating func fail(atMs nowMs: Int) {
    failures += 1
    retryMs = nowMs + BackOff.pauseMs(failures: failures)
  }

  /// Records that an update succeeded.
  mutating func succeed() { (failures, retryMs) = (0, .min) }
}
