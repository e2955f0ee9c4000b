import Glibc

/// One line on a terminal that is kept up to date; nothing in a pipe.
struct Progress {
  private let isShown: Bool
  private let startedAt: Int
  private var shownAt = 0

  init(isShown: Bool) {
    self.isShown = isShown && isatty(STDERR_FILENO) == 1
    startedAt = Self.milliseconds()
  }

  mutating func show(_ counts: Tally.Counts) {
    let now = Self.milliseconds()
    guard isShown, now - shownAt >= 100 else { return }
    shownAt = now
    let rate = counts.frames * 1_000 / max(1, now - startedAt)
    put(
      "\r\u{1B}[K\(counts.published) batches, \(counts.segments) segments, \(counts.frames) frames, \(rate)/s",
      on: STDERR_FILENO)
  }

  func finish() {
    if isShown && shownAt > 0 { put("\r\u{1B}[K", on: STDERR_FILENO) }
  }

  private static func milliseconds() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return time.tv_sec * 1_000 + time.tv_nsec / 1_000_000
  }
}
