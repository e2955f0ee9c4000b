// Whether workers of other hosts live, judged by nothing but what one sees: a number that goes up, and one's own clock. Locks of
// other hosts may not be seen, their clocks may be wrong, and times of files may be cached.

import FileSystem
import Synchronization

/// Remembers when it last saw each worker do something.
package final class HeartbeatMonitor: Sendable {
  /// A lease that outlasts a pause of a disk, in seconds. Workers count every three.
  package static let defaultLease = 60

  private let lease: Int
  private let clock: @Sendable () -> Int
  private let seen = Mutex<[String: (beat: [UInt8], since: Int)]>([:])

  /// - Parameters:
  ///   - lease: after so many seconds without a beat a worker is taken for dead.
  ///   - clock: seconds that only go up.
  package init(lease: Int, clock: @escaping @Sendable () -> Int = MonotonicClock.seconds) {
    self.lease = lease
    self.clock = clock
  }

  /// Whether the worker that this directory belongs to has been still for a lease, as far as we have watched it.
  func hasExpired(_ directory: String) throws(DiskError) -> Bool {
    let beat = try DurableFile.contents(of: directory + "/alive", limit: 64) ?? []
    let moment = clock()
    return seen.withLock { seen in
      if let before = seen[directory], before.beat == beat { return moment - before.since >= lease }
      seen[directory] = (beat, moment)
      return false
    }
  }

  /// Forgets who is not there any more.
  package func keep(only directories: Set<String>) {
    seen.withLock { seen in seen = seen.filter { directories.contains($0.key) } }
  }
}
