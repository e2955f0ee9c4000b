import Encoding
import FileSystem
import Glibc
import Logging
import Sessions
import Synchronization
import WorkQueues

#if ServiceLifecycle
  import ServiceLifecycle

  /// At a graceful shutdown, ``run()`` ends as after ``stop()``.
  extension SpoolWorker: Service {}
#endif

/// Encodes the batches of a spool in this process until it is stopped, as `encoder-worker run` does. For one run: make
/// another worker to start again.
///
/// Several workers may share a spool, in this process, in others and on other hosts. The worker has threads of its own:
/// none of its work runs on Swift's cooperative pool.
public final class SpoolWorker: Sendable {
  private struct Run {
    var isStarted = false
    /// Nil before the end.
    var result: Result<Void, any Error>?
    /// The callers that wait for the end.
    var waiters: [CheckedContinuation<Void, any Error>] = []
  }

  private let loop: WorkerLoop
  private let shutdown: ShutdownState
  private let state = Mutex(Run())

  /// The rules of a worker, and the files beside segments.
  public struct Settings: Sendable {
    /// The directory for sessions; nil for `SPOOL/output`.
    public var output: String?
    /// The number of batches that are encoded in parallel.
    public var threads = 1
    /// Whether published batches go to `done/` of the spool, instead of being removed.
    public var keepsBatches = false
    /// Whether to keep a live HLS playlist of each session.
    public var hls = false
    /// Whether to keep preview thumbnails of each session.
    public var thumbnails = false
    /// Whether to keep Sentry's event beside each manifest.
    public var sentry = false
    /// The timeout of a batch, in seconds; then it counts as failed.
    public var maxTimeS = 3_600
    /// The free bytes on the output's disk that a new batch needs.
    public var minFreeBytes = 0

    /// Creates the usual settings.
    public init() {}
  }

  /// Joins the workers of a spool. Creates missing directories of spool and output.
  ///
  /// - Parameters:
  ///   - spool: the directory of the spool.
  ///   - settings: the rules for batches, and the files beside segments.
  ///   - options: how batches are decoded and encoded.
  ///   - logger: gets failures, quarantined batches, and each batch (`info`).
  ///   - metrics: gets the counts and durations; nil for swift-metrics, if the package's trait `Observability` is on.
  /// - Throws: ``DiskError``; another error if the output lies in the spool's own directories or in a session.
  public init(
    spool: String, _ settings: Settings = Settings(), _ options: BatchEncoder.Options = BatchEncoder.Options(),
    logger: Logger, metrics: (any WorkerMetrics)? = nil
  ) throws {
    shutdown = try ShutdownState()
    if settings.hls || settings.thumbnails { try FormatLibrary.load() }
    let id = WorkerID()
    let views = SessionViews(
      .on([(.hls, settings.hls), (.thumbnails, settings.thumbnails), (.sentry, settings.sentry)]),
      shouldContinue: shutdown.shouldContinue)
    let (queue, store) = try Self.open(
      spool, output: settings.output, as: id, lease: HeartbeatMonitor.defaultLease, views)
    let rules = WorkerRules(
      keepsBatches: settings.keepsBatches, maxTimeS: settings.maxTimeS,
      freeSpace: FreeSpace(minimum: settings.minFreeBytes))
    var reports = WorkerReports(to: logger)
    reports.metrics = metrics ?? systemMetrics
    let worker = Worker(id, queue: queue, store: store, options: options, rules, reports: reports)
    loop = WorkerLoop(worker, threads: settings.threads, drains: false, shutdown: shutdown)
  }

  /// Makes this worker's directories in a spool and in its output.
  package static func open(
    _ path: String, output: String?, as id: WorkerID, lease: Int, _ views: SessionViews
  ) throws -> (SpoolQueue, DirectoryStore) {
    try SessionDirectory.requireOutside(output ?? path)
    let spool = try Spool(creating: path)
    if let output, !spool.allows(output: output) {
      throw BadTarget(path: output, cause: "batches lie there", advice: "name a directory outside of the spool's own")
    }
    let queue = try SpoolQueue(spool, worker: id, elsewhere: HeartbeatMonitor(lease: lease))
    let staging = try Staging(output: output ?? spool.defaultOutput, worker: id)
    return (queue, DirectoryStore(staging: staging, index: views))
  }

  /// Works until ``stop()`` is called or the task is cancelled, and returns then without an error. At a stop the worker
  /// finishes batches in work, or puts them back after five seconds. It logs and retries failures of batches and of the
  /// environment.
  ///
  /// A worker has one run: another call waits for the end of the same run.
  ///
  /// - Throws: failures that need a new worker: the sandbox is gone, another process removed the worker's directory, or a
  ///   thread cannot be started.
  public func run() async throws {
    try await withTaskCancellationHandler {
      #if ServiceLifecycle
        try await withGracefulShutdownHandler {
          try await end()
        } onGracefulShutdown: { [shutdown] in
          shutdown.stop()
        }
      #else
        try await end()
      #endif
    } onCancel: {
      shutdown.stop()
    }
  }

  /// Stops the worker, and returns when ``run()`` has ended and the worker has left the spool: after some five seconds at
  /// the latest, unless a batch hangs in a library or on a disk. Only the end of the process ends that, so limit the
  /// time of your shutdown. The next worker takes the batch over.
  ///
  /// A worker that has not started leaves the spool, too. More calls do no harm.
  public func stop() async {
    shutdown.stop()
    // `run()` throws the error.
    try? await end()
  }

  /// The reason why no new batch is begun, for a readiness check; nil when all is well.
  public var trouble: String? {
    let isRunning = state.withLock { $0.isStarted && $0.result == nil }
    return loop.trouble ?? (isRunning ? nil : "not running")
  }

  /// Starts the loop on a thread of its own, unless it has started, and waits for its end.
  private func end() async throws {
    try await withCheckedThrowingContinuation { (waiter: CheckedContinuation<Void, any Error>) in
      let (result, isFirst) = state.withLock { state in
        if state.result == nil { state.waiters.append(waiter) }
        defer { state.isStarted = true }
        return (state.result, !state.isStarted)
      }
      if let result { waiter.resume(with: result) }
      guard isFirst else { return }
      do {
        try ThreadGroup().start { [self] in
          // Nobody joins this thread.
          pthread_detach(pthread_self())
          finish(Result { try work() })
        }
      } catch {
        finish(.failure(error))
      }
    }
  }

  private func finish(_ result: Result<Void, any Error>) {
    let waiters = state.withLock { state in
      defer { state.waiters = [] }
      state.result = result
      return state.waiters
    }
    for waiter in waiters { waiter.resume(with: result) }
  }

  private func work() throws {
    let end = try loop.run(onStuck: { [logger = loop.worker.logger] in
      logger.error(
        "batch.stuck", metadata: ["batch": "\($0.batch)", "error": "\($0); only the end of this process ends it"])
    })
    if end.isFatal, let failure = end.failure { throw failure }
  }
}
