import Glibc
import Synchronization
import WorkQueues

/// Counts of a worker since it started. A restart after a stuck batch keeps them.
final class Tally: Sendable {
  /// The name does not begin like those of settings, which the parser checks.
  private static let variable = "_TALLY_OF_ENCODER_WORKER"

  private let counts: Mutex<WorkerTally>

  init() {
    let before = getenv(Self.variable).flatMap { WorkerTally(json: Array(String(cString: $0).utf8)) }
    counts = Mutex(before ?? WorkerTally())
    unsetenv(Self.variable)
  }

  /// Puts the counts into the environment, for `execv`.
  func handOn() { setenv(Self.variable, now.json.line, 1) }

  func add(_ change: (inout WorkerTally) -> Void) { counts.withLock { change(&$0) } }

  var now: WorkerTally { counts.withLock { $0 } }
}

extension WorkerTally {
  /// For a person, at the end of a drain.
  var summary: String {
    var parts = [
      count(published, "batch", "batches") + " published", count(segments, "segment"), count(frames, "frame"),
    ]
    if duplicates > 0 { parts.append("\(duplicates) published before") }
    if refused > 0 { parts.append(count(refused, "frame") + " refused") }
    if quarantined > 0 { parts.append(count(quarantined, "batch", "batches") + " in quarantine") }
    return parts.joined(separator: ", ")
  }
}
