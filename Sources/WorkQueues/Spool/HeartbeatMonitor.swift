// Finds dead workers of other hosts. It compares only the number in a worker's heartbeat file, and its own clock: locks
// of other hosts may be invisible, their clocks may be wrong, and times of files may be cached.

import FileSystem
import Synchronization

/// Remembers when each worker's heartbeat last changed.
package final class HeartbeatMonitor: Sendable {
  /// In seconds, to outlast a pause of a disk. Workers send a heartbeat every three seconds.
  package static let defaultLease = 60

  private let lease: Int
  private let clock: @Sendable () -> Int
  private let seen = Mutex<[String: (beat: [UInt8], since: Int)]>([:])

  /// - Parameters:
  ///   - lease: seconds without a heartbeat after which a worker counts as dead.
  ///   - clock: seconds of a monotonic clock.
  package init(lease: Int, clock: @escaping @Sendable () -> Int = MonotonicClock.seconds) {
    self.lease = lease
    self.clock = clock
  }

  /// Whether this monitor has watched a worker's directory for a lease, and has seen no heartbeat.
  func hasExpired(_ directory: String) throws(DiskError) -> Bool {
    let beat = try DurableFile.contents(of: directory + "/alive", limit: 64) ?? []
    let now = clock()
    return seen.withLock { seen in
      if let before = seen[directory], before.beat == beat { return now - before.since >= lease }
      seen[directory] = (beat, now)
      return false
    }
  }

  /// Forgets all other directories.
  func keep(only directories: Set<String>) {
    seen.withLock { seen in seen = seen.filter { directories.contains($0.key) } }
  }
}
