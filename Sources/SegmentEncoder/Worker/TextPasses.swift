// Reads the words in pictures that a worker has published, on a thread of its own: batches never wait for it, and do not fail with it.
// Sessions whose pictures it has not read at a stop or a crash are completed by their next batch, or by `encoder-worker text`.

import Encoding
import FileSystem
import FrameBatches
import Logging
import Sessions
import Synchronization

package final class TextPasses: Sendable {
  /// The time between two looks for sessions, in milliseconds.
  private static let lookMs = 200
  /// Maximum number of sessions that wait.
  private static let maximumWaiting = 100_000

  private struct State {
    /// The start of the first new segment of each, in unix milliseconds.
    var waiting: [SessionID: Int64] = [:]
    /// In the order in which they came.
    var order: [SessionID] = []
    /// The session that is being read.
    var current: SessionID?
    /// Sessions that found no place.
    var dropped = 0
  }

  private let engine: TextEngine
  private let store: any WorkerStore
  private let decoders: DecoderForkServer?
  private let freeSpace: FreeSpace
  private let shutdown: ShutdownState
  private let logger: Logger
  private let state = Mutex(State())
  private let thread = Mutex<PeriodicThread?>(nil)
  private let isEnding = Atomic(false)

  /// - Parameters:
  ///   - store: of the sessions.
  ///   - decoders: those that read videos; nil to decode the worker's own segments in this process.
  ///   - freeSpace: the free space that words need on the disk of the store's staging. With less, sessions wait.
  ///   - shutdown: a stop request ends the work within a second.
  package init(
    _ engine: TextEngine, of store: any WorkerStore, decoders: DecoderForkServer?, _ freeSpace: FreeSpace = FreeSpace(),
    shutdown: ShutdownState, logger: Logger
  ) {
    self.freeSpace = freeSpace
    (self.engine, self.store, self.decoders) = (engine, store, decoders)
    (self.shutdown, self.logger) = (shutdown, logger)
  }

  /// Takes a session of which segments were published, or had been.
  ///
  /// - Parameter fromMs: the start of the first of them, in unix milliseconds.
  func add(_ session: SessionID, fromMs: Int64) {
    state.withLock { state in
      if let knownMs = state.waiting[session] {
        state.waiting[session] = min(knownMs, fromMs)
        return
      }
      guard state.order.count < Self.maximumWaiting else {
        state.dropped += 1
        return
      }
      state.waiting[session] = fromMs
      state.order.append(session)
    }
  }

  /// Whether words of a session are still to be read.
  func isWaiting(_ session: SessionID) -> Bool {
    state.withLock { $0.current == session || $0.waiting[session] != nil }
  }

  /// Starts the thread.
  func start() throws {
    let started = try PeriodicThread("text", everyMs: Self.lookMs) { [self] in
      pass(Cancellation { [self] in shutdown.isStopping || isEnding.load(ordering: .relaxed) })
    }
    thread.withLock { $0 = started }
  }

  /// Ends the thread. Logs the sessions that still wait.
  ///
  /// - Parameter all: whether to read the sessions that wait, until the worker stops.
  func finish(all: Bool) {
    isEnding.store(true, ordering: .relaxed)
    thread.withLock { thread in
      thread?.stop()
      thread = nil
    }
    // This is the thread of the worker's loop. A picture may take minutes, in which the loop is not stuck.
    if all {
      pass(
        Cancellation { [shutdown] in
          shutdown.beat()
          return shutdown.isStopping
        })
    }
    let left = state.withLock { $0.order.count + $0.dropped }
    guard left > 0 else { return }
    logger.warning(
      "text.left", metadata: ["sessions": .stringConvertible(left), "advice": "\(advice("SESSION"))"])
  }

  /// Reads the sessions that wait, until there are none.
  private func pass(_ cancellation: Cancellation) {
    while !cancellation.isRequested, hasRoom, let (session, fromMs) = next() {
      read(session, fromMs: fromMs, cancellation)
      state.withLock { $0.current = nil }
    }
  }

  /// The worker logs that there is too little room.
  private var hasRoom: Bool {
    do {
      try freeSpace.require(at: store.staging.output)
      return true
    } catch {
      return !(error is LowDiskSpace)
    }
  }

  private func advice(_ session: String) -> String {
    "the next batch of a session completes it, and so does encoder-worker text \(store.textArguments(of: session))"
  }

  private func next() -> (session: SessionID, fromMs: Int64)? {
    state.withLock { state in
      guard !state.order.isEmpty else { return nil }
      let session = state.order.removeFirst()
      state.current = session
      return state.waiting.removeValue(forKey: session).map { (session, $0) }
    }
  }

  private func read(_ session: SessionID, fromMs: Int64, _ cancellation: Cancellation) {
    let about: Logger.Metadata = ["session": "\(session)"]
    do {
      let report = try store.readText(
        of: session, fromMs: fromMs, engine, decoders: decoders, cancellation: cancellation
      ) { _, _ in
        try cancellation.check()
        try freeSpace.require(at: store.staging.output)
      }
      log(report, about)
    } catch let error where error is Cancelled || error is LowDiskSpace {
      add(session, fromMs: fromMs)
    } catch {
      let facts: Logger.Metadata = ["error": "\(error)", "advice": "\(advice("\(session)"))"]
      logger.warning("text.failed", metadata: about.merging(facts) { $1 })
    }
  }

  private func log(_ report: SessionTextReport, _ about: Logger.Metadata) {
    for problem in report.warnings + report.problems {
      let facts: Logger.Metadata = [
        "file": "\(problem.file)", "reason": "\(problem.what)",
        "advice": "encoder-worker text --again \(store.textArguments(of: report.session)) reads them again",
      ]
      logger.warning("text.incomplete", metadata: about.merging(facts) { $1 })
    }
    guard report.written > 0 else { return }
    let counts: Logger.Metadata = [
      "segments": .stringConvertible(report.written), "pictures": .stringConvertible(report.pictures),
      "words": .stringConvertible(report.words),
    ]
    logger.info("text.read", metadata: about.merging(counts) { $1 })
  }
}
