// The passes of a worker over the sessions that it brings into a store, on a thread of their own: batches never wait for them.

import FileSystem
import FrameBatches
import Logging
import Notifying
import Sessions
import Synchronization

package final class UploadPasses: Sendable {
  /// The time between two looks whether a pass is due, and between two passes, in milliseconds.
  private static let (lookMs, intervalMs) = (1_000, 5_000)
  /// The longest time between two passes while the store is away, in milliseconds.
  private static let longestPauseMs = 60_000

  private struct State {
    var nextMs = Int.min
    /// Passes in a row with a failure.
    var failures = 0
    /// The last failure of each session.
    var failed: [String: String] = [:]
    /// Whether its receiver has taken the event of a session that was announced.
    var events: [SessionID: Bool] = [:]
    var counts = Counts()
  }

  /// The counts of the passes, and the sessions that wait.
  package struct Counts: Sendable {
    /// Sessions that were uploaded as a whole since the start.
    package var sessions = 0
    /// The size of the videos that were uploaded since the start.
    package var bytes = 0
    /// nil before the first pass.
    package var state: UploadState?
  }

  private let store: String
  private let makeUploads: @Sendable (OutputUploads.Listener) -> OutputUploads
  private let state = Mutex(State())
  private let shutdown: ShutdownState

  /// - Parameters:
  ///   - store: the store's name.
  ///   - makeUploads: makes what a pass performs.
  package init(
    to store: String, shutdown: ShutdownState,
    _ makeUploads: @escaping @Sendable (OutputUploads.Listener) -> OutputUploads
  ) {
    (self.store, self.shutdown, self.makeUploads) = (store, shutdown, makeUploads)
  }

  package var counts: Counts { state.withLock(\.counts) }

  /// Starts the thread.
  func start(_ worker: Worker) throws -> PeriodicThread {
    try PeriodicThread("uploads", everyMs: Self.lookMs) { [self] in
      guard MonotonicClock.milliseconds() >= state.withLock(\.nextMs), !shutdown.isStopping else { return }
      _ = pass(worker)
    }
  }

  /// Makes a pass, and logs what it has done.
  ///
  /// - Returns: its first failure.
  func pass(_ worker: Worker) -> (any Error)? {
    var listener = OutputUploads.Listener()
    listener.isBusy = { [worker] in worker.texts?.isWaiting($0) ?? false }
    listener.announce = { [self, worker] in announce($0, worker) }
    let report = makeUploads(listener).run(nowMs: WallClock.nowMs)
    log(report, worker.logger)
    note(report)
    return report.failures.first?.error
  }

  private func log(_ report: UploadReport, _ logger: Logger) {
    for uploaded in report.uploaded where uploaded.segments > 0 {
      logger.info(
        "session.uploaded",
        metadata: [
          "session": "\(uploaded.session)", "segments": .stringConvertible(uploaded.segments),
          "bytes": .stringConvertible(uploaded.bytes), "complete": .stringConvertible(uploaded.isComplete),
          "store": "\(store)",
        ])
    }
    for session in report.deleted {
      logger.info(
        "session.deleted", metadata: ["session": "\(session)", "store": "\(store)"])
    }
    let segments = report.removed.reduce(0) { $0 + $1.segments }
    if segments > 0 {
      logger.info(
        "segments.removed",
        metadata: [
          "sessions": .stringConvertible(report.removed.count), "segments": .stringConvertible(segments),
          "bytes": .stringConvertible(report.removed.reduce(0) { $0 + $1.bytes }), "store": "\(store)",
        ])
    }
    log(report.failures, logger)
  }

  /// Logs each failure once.
  private func log(_ failures: [(session: SessionID?, error: any Error)], _ logger: Logger) {
    let new = state.withLock { state in
      let texts = Dictionary(
        failures.map { ($0.session?.description ?? "", "\($0.error)") }, uniquingKeysWith: { $1 })
      defer { state.failed = texts }
      return texts.filter { state.failed[$0.key] != $0.value }
    }
    for (session, text) in new.sorted(by: { $0.key < $1.key }) {
      logger.error("upload.failed", metadata: ["session": "\(session)", "error": "\(text)"])
    }
  }

  private func note(_ report: UploadReport) {
    state.withLock { state in
      state.failures = report.failures.isEmpty ? 0 : state.failures + 1
      let pauseMs =
        state.failures == 0
        ? Self.intervalMs
        : BackOff.pauseMs(failures: state.failures, firstMs: Self.intervalMs, mostMs: Self.longestPauseMs)
      state.nextMs = MonotonicClock.milliseconds() + pauseMs
      state.counts.sessions += report.uploaded.count { $0.isComplete }
      state.counts.bytes += report.uploaded.reduce(0) { $0 + $1.bytes }
      if let new = report.state { state.counts.state = new }
    }
  }

  // MARK: - Events

  /// - Returns: whether the receiver of the event has taken it.
  private func announce(_ session: EndedSession, _ worker: Worker) -> Bool {
    let id = session.end.session
    switch state.withLock({ $0.events[id] }) {
    case true?:
      state.withLock { $0.events[id] = nil }
      return true
    case false?: return false
    case nil: break
    }
    let event = SessionEvent(uploaded: session, to: store)
    worker.write?(event)
    guard let notifier = worker.notifier else { return true }
    state.withLock { $0.events[id] = false }
    notifier.add(.upload(id), event)
    return false
  }

  /// Notes that the receiver of a session's event has taken it, or has refused it for good.
  func finish(_ session: SessionID) {
    state.withLock { state in
      state.events[session] = true
      state.nextMs = .min
    }
  }
}

extension Worker {
  /// Notes that the event of an uploaded session is delivered, or refused by its receiver. For any thread.
  func finish(upload session: SessionID, keeping refused: RefusedNotification?) {
    do {
      if let refused { try queue.notifications.add(refused) }
      uploads?.finish(session)
    } catch {
      // The event is sent again by the next process.
      logger.error("session.failed", metadata: ["session": "\(session)", "error": "\(error)"])
    }
  }
}
