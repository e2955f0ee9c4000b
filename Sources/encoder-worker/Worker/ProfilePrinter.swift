import FileSystem
import JSON
import SegmentEncoder
import Synchronization

/// Prints the time of each stage on standard error while a worker runs: each line tells of the time since the one before.
final class ProfilePrinter: Sendable {
  private let profile: Profile
  private let sinceMs = Mutex(WallClock.nowMs)
  private let thread: Mutex<PeriodicThread?>

  /// - Parameter minutes: the pause before each line.
  init(_ profile: Profile, everyMinutes minutes: Int) throws {
    self.profile = profile
    thread = Mutex(nil)
    let started = try PeriodicThread("profile", everyMs: 60_000 * minutes) { [weak self] in self?.printLine() }
    thread.withLock { $0 = started }
  }

  /// Prints the last line.
  func stop() {
    thread.withLock { $0 }?.stop()
    printLine()
  }

  private func printLine() {
    let now = WallClock.nowMs
    let since = sinceMs.withLock { since in
      defer { since = now }
      return since
    }
    let line = JSONValue.object([
      "event": .string("worker.profile"), "sinceMs": .number(since), "untilMs": .number(now),
      "stages": profile.takeMeasured().json,
    ])
    StandardError.write(line: line.line)
  }
}
