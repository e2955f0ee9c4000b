// The passes of rolling retention of a worker, on a thread of their own: batches never wait for them, except for a session's lock.

import FileSystem
import FrameBatches
import ISOMedia
import Logging
import Sessions
import Synchronization

package final class RetentionPasses: Sendable {
  /// The time between two looks whether a pass is due, in milliseconds.
  private static let lookMs = 5_000

  private let remove: @Sendable (_ nowMs: Int64) -> RetentionReport
  private let intervalMs: @Sendable () -> Int
  private let logger: Logger
  private let nextMs = Atomic(Int.min)

  /// - Parameter shutdown: a stop request ends a pass between two files.
  package init(_ limits: RetentionLimits, of store: DirectoryStore, shutdown: ShutdownState, logger: Logger) {
    let staging = store.staging
    let retention = RollingRetention(
      limits, output: staging.output, views: store.index, temporary: { staging.temporaryFile() },
      shouldContinue: { !shutdown.isStopping })
    remove = { retention.run(nowMs: $0) }
    (intervalMs, self.logger) = ({ limits.intervalMs }, logger)
  }

  /// - Parameter shutdown: a stop request ends a pass between two requests.
  package init(_ limits: RetentionLimits, of store: ObjectStore, shutdown: ShutdownState, logger: Logger) {
    let retention = StoredRetention(limits, of: store, shouldContinue: { !shutdown.isStopping })
    remove = { retention.run(nowMs: $0) }
    (intervalMs, self.logger) = ({ retention.intervalMs }, logger)
  }

  /// Starts the thread.
  func start() throws -> PeriodicThread {
    try PeriodicThread("retention", everyMs: Self.lookMs) { [self] in
      guard MonotonicClock.milliseconds() >= nextMs.load(ordering: .relaxed) else { return }
      pass()
      nextMs.store(MonotonicClock.milliseconds() + intervalMs(), ordering: .relaxed)
    }
  }

  /// Removes what is beyond the limits, and logs that.
  func pass() {
    let report = remove(WallClock.nowMs)
    if let untilMs = report.untilMs {
      logger.info(
        "segments.removed",
        metadata: [
          "sessions": .stringConvertible(report.removed.count), "segments": .stringConvertible(report.segments),
          "bytes": .stringConvertible(report.bytes), "until": "\(untilMs.dateText)",
        ])
    }
    for failure in report.failures { logger.error("retention.failed", metadata: ["error": "\(failure)"]) }
  }
}
