import FileSystem
import Glibc

/// A progress bar in the last line of a terminal, with rate and remaining time. Without a terminal, or with
/// `TERM=dumb`, nothing is shown.
struct Progress {
  private static let cells = 24

  let isShown: Bool
  private let startedAt: Int
  private var shownAt = 0

  init(isShown: Bool = true) {
    self.isShown = isShown && TerminalScreen(of: STDERR_FILENO) != nil
    startedAt = MonotonicClock.milliseconds()
  }

  /// Updates the bar, at most ten times a second.
  ///
  /// - Parameters:
  ///   - partly: the finished fractions of units in work, added up.
  ///   - total: the number of units; it may grow.
  ///   - suffix: text after the remaining time.
  mutating func show(_ done: Int, partly: Double = 0, of total: Int, _ unit: String, suffix: String = "") {
    let now = MonotonicClock.milliseconds()
    guard isShown, now - shownAt >= 100, let screen = TerminalScreen(of: STDERR_FILENO) else { return }
    shownAt = now
    let text = Self.text(done, of: total, unit, elapsedMs: max(1, now - startedAt)) + suffix
    StandardError.show(bar: Self.line(text, Double(done) + partly, of: total, columns: screen.columns))
  }

  /// Clears the line.
  mutating func finish() {
    if shownAt > 0 { StandardError.removeBar() }
    shownAt = 0
  }

  static func text(_ done: Int, of total: Int, _ unit: String, elapsedMs: Int) -> String {
    let perHour = done * 3_600_000 / elapsedMs
    let rate =
      switch perHour {
      case 3_600...: ", \(perHour / 3_600)/s"
      case 60...: ", \(perHour / 60)/min"
      default: ""
      }
    let remaining = done == 0 ? "" : ", \(duration(ms: Int64((total - done) * elapsedMs / done + 999))) left"
    return "\(done) of \(total) \(unit)\(rate)\(remaining)"
  }

  /// Leaves the last column free: a full line may wrap.
  static func line(_ text: String, _ done: Double, of total: Int, columns: Int) -> String {
    let available = max(0, columns - 1)
    let cells = min(Self.cells, available - text.count - 1)
    guard cells >= 4 else { return String(text.prefix(available)) }
    let full = Int(Double(cells) * min(done, Double(total)) / Double(max(1, total)))
    return String(repeating: "█", count: full) + String(repeating: "░", count: cells - full) + " " + text
  }
}
