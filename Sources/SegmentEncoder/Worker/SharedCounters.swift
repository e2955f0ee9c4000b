import Synchronization
import WorkQueues

/// The counters of a worker since its start, for several threads.
package final class SharedCounters: Sendable {
  private let counts: Mutex<WorkerCounters>

  /// - Parameter before: the counters of the process before a restart.
  init(continuing before: WorkerCounters) { counts = Mutex(before) }

  func add(_ change: (inout WorkerCounters) -> Void) { counts.withLock { change(&$0) } }

  package var now: WorkerCounters { counts.withLock { $0 } }
}

/// `1 segment`, `2 segments`.
package func count(_ number: Int, _ one: String, _ many: String? = nil) -> String {
  "\(number) \(number == 1 ? one : many ?? one + "s")"
}
