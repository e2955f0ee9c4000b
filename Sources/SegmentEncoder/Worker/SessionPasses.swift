// The passes of a worker over all sessions, such as rolling retention and compaction, each on a thread of its own: batches never wait for them,
// except for a session's lock.

import FileSystem
import FrameBatches
import ISOMedia
import Logging
import Sessions
import Synchronization

package final class SessionPasses: Sendable {
  /// The time between two looks whether a pass is due, in milliseconds.
  private static let lookMs = 5_000

  private let name: String
  private let work: @Sendable () -> Void
  private let intervalMs: @Sendable () -> Int
  /// The work of a look before a pass is due: it gets the sessions that were added.
  private let early: (@Sendable ([SessionID]) -> Void)?
  private let nextMs = Atomic(Int.min)
  private let added = Mutex<[SessionID]>([])

  /// - Parameters:
  ///   - early: called between two passes with the sessions that were added; nil to leave them for the next pass.
  init(
    _ name: String, intervalMs: @escaping @Sendable () -> Int, early: (@Sendable ([SessionID]) -> Void)? = nil,
    _ work: @escaping @Sendable () -> Void
  ) {
    (self.name, self.intervalMs, self.early, self.work) = (name, intervalMs, early, work)
  }

  /// Adds a session that need not wait for the next pass.
  func add(_ session: SessionID) { if early != nil { added.withLock { $0.append(session) } } }

  /// Starts the thread.
  func start() throws -> PeriodicThread {
    try PeriodicThread(name, everyMs: Self.lookMs) { [self] in
      let sessions = added.withLock { added in
        defer { added = [] }
        return added
      }
      if !sessions.isEmpty { early?(sessions) }
      guard MonotonicClock.milliseconds() >= nextMs.load(ordering: .relaxed) else { return }
      pass()
      nextMs.store(MonotonicClock.milliseconds() + intervalMs(), ordering: .relaxed)
    }
  }

  /// Makes a pass now.
  func pass() { work() }
}

extension SessionPasses {
  /// Removes the segments of a directory that are beyond limits, and logs that.
  ///
  /// - Parameter shutdown: a stop request ends a pass between two files.
  package static func retention(
    _ limits: RetentionLimits, of store: DirectoryStore, shutdown: ShutdownState, logger: Logger
  ) -> SessionPasses {
    let staging = store.staging
    let retention = RollingRetention(
      limits, output: staging.output, views: store.index, temporary: { staging.temporaryFile() },
      shouldContinue: { !shutdown.isStopping })
    return SessionPasses(
      "retention", intervalMs: { limits.intervalMs }, { logger.log(retention.run(nowMs: WallClock.nowMs)) })
  }

  /// Removes the segments of a store that are beyond limits, and logs that.
  ///
  /// - Parameter shutdown: a stop request ends a pass between two requests.
  package static func retention(
    _ limits: RetentionLimits, of store: ObjectStore, shutdown: ShutdownState, logger: Logger
  ) -> SessionPasses {
    let retention = StoredRetention(limits, of: store, shouldContinue: { !shutdown.isStopping })
    return SessionPasses("retention", intervalMs: { retention.intervalMs }, { logger.log(retention.run()) })
  }

  /// Compacts the sessions of a store that have ended, and the old parts of others, and logs that.
  ///
  /// - Parameter shutdown: a stop request ends a pass between two requests.
  package static func compaction(of store: ObjectStore, shutdown: ShutdownState, logger: Logger) -> SessionPasses {
    let compaction = StoredCompaction(
      of: store, ageMs: StoredCompaction.ageMs, takesEnded: true, shouldContinue: { !shutdown.isStopping })
    return SessionPasses(
      "compaction", intervalMs: { compaction.intervalMs }, early: { logger.log(compaction.run($0)) },
      { logger.log(compaction.run()) })
  }
}

extension Logger {
  fileprivate func log(_ report: RetentionReport) {
    if let untilMs = report.untilMs {
      info(
        "segments.removed",
        metadata: [
          "sessions": .stringConvertible(report.removed.count), "segments": .stringConvertible(report.segments),
          "bytes": .stringConvertible(report.bytes), "until": "\(untilMs.dateText)",
        ])
    }
    for failure in report.failures { error("retention.failed", metadata: ["error": "\(failure)"]) }
  }

  fileprivate func log(_ report: CompactionReport) {
    for session in report.sessions {
      info(
        "session.compacted",
        metadata: [
          "session": "\(session.session)", "segments": .stringConvertible(session.segments),
          "objects": .stringConvertible(session.objects), "packs": .stringConvertible(session.packs),
        ])
    }
    if report.removed > 0 { info("objects.removed", metadata: ["objects": .stringConvertible(report.removed)]) }
    for failure in report.failures { error("compaction.failed", metadata: ["error": "\(failure)"]) }
  }
}
