import Synchronization
import WorkQueues

/// Counts of a worker since it started.
package final class SharedCounters: Sendable {
  private let counts: Mutex<WorkerCounters>

  /// - Parameter before: the counts of the worker that this one continues.
  init(continuing before: WorkerCounters) { counts = Mutex(before) }

  func add(_ change: (inout WorkerCounters) -> Void) { counts.withLock { change(&$0) } }

  package var now: WorkerCounters { counts.withLock { $0 } }
}

/// `1 segment`, `2 segments`.
package func count(_ number: Int, _ one: String, _ many: String? = nil) -> String {
  "\(number) \(number == 1 ? one : many ?? one + "s")"
}
