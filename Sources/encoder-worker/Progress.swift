import Glibc
import SegmentEncoder

/// One line on a terminal that is kept up to date; nothing in a pipe.
struct Progress {
  private let isShown: Bool
  private let startedAt: Int
  private var shownAt = 0

  init(isShown: Bool = true) {
    self.isShown = isShown && isatty(STDERR_FILENO) == 1
    startedAt = MonotonicClock.milliseconds()
  }

  /// Of work whose end is not known.
  mutating func show(_ counts: WorkerTally) {
    show { elapsedMs in
      let rate = counts.frames * 1_000 / elapsedMs
      return "\(counts.published) batches, \(counts.segments) segments, \(counts.frames) frames, \(rate)/s"
    }
  }

  /// Of work that is `done` out of `total`.
  mutating func show(_ done: Int, of total: Int, _ unit: String) {
    show { elapsedMs in
      let cells = 24
      let full = cells * done / max(1, total)
      let bar = String(repeating: "█", count: full) + String(repeating: "░", count: cells - full)
      let leftS = done > 0 ? (total - done) * elapsedMs / done / 1_000 : 0
      let left = done == 0 ? "" : leftS < 60 ? ", \(leftS) s left" : ", \(leftS / 60) min left"
      let rate = done * 1_000 / elapsedMs
      return "\(bar) \(done) of \(total) \(unit)" + (rate > 0 ? ", \(rate)/s" : "") + left
    }
  }

  /// At most ten times a second.
  private mutating func show(_ text: (_ elapsedMs: Int) -> String) {
    let now = MonotonicClock.milliseconds()
    guard isShown, now - shownAt >= 100 else { return }
    shownAt = now
    _ = put("\r\u{1B}[K" + text(max(1, now - startedAt)), on: STDERR_FILENO)
  }

  /// Clears the line.
  mutating func finish() {
    if shownAt > 0 { _ = put("\r\u{1B}[K", on: STDERR_FILENO) }
    shownAt = 0
  }
}
