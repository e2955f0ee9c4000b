import Synchronization
import WorkQueues

/// Counts of a worker since it started.
package final class Tally: Sendable {
  private let counts: Mutex<WorkerTally>

  /// - Parameter before: the counts of the worker that this one continues.
  init(continuing before: WorkerTally) { counts = Mutex(before) }

  func add(_ change: (inout WorkerTally) -> Void) { counts.withLock { change(&$0) } }

  package var now: WorkerTally { counts.withLock { $0 } }
}

/// `1 segment`, `2 segments`.
package func count(_ number: Int, _ one: String, _ many: String? = nil) -> String {
  "\(number) \(number == 1 ? one : many ?? one + "s")"
}
