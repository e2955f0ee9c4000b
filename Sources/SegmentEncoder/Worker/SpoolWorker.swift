import Encoding
import FileSystem
import Logging
import Sessions
import WorkQueues

/// Encodes the batches of a spool in this process until it is stopped, as `encoder-worker run` does. For one run.
///
/// Several workers may share a spool, in this process, in others and on other hosts. Nothing runs on Swift's
/// cooperative pool.
public final class SpoolWorker: Sendable {
  private let loop: WorkerLoop
  private let shutdown: ShutdownState

  /// Joins the workers of a spool. Creates missing directories of spool and output.
  ///
  /// - Parameters:
  ///   - output: the directory for sessions; nil for `SPOOL/output`.
  ///   - threads: the number of batches that are encoded in parallel.
  ///   - keepBatches: whether published batches go to `done/` of the spool, instead of being removed.
  ///   - hls: whether to keep a live HLS playlist of each session.
  ///   - thumbnails: whether to keep preview thumbnails of each session.
  ///   - sentry: whether to keep Sentry's event beside each manifest.
  ///   - maxTimeS: the timeout of a batch, in seconds; then it counts as failed.
  ///   - minFreeBytes: the free bytes on the output's disk that a new batch needs.
  ///   - logger: gets failures, quarantined batches, and each batch (`info`).
  /// - Throws: ``DiskError``; another error if the output lies in the spool's own directories or in a session.
  public init(
    spool: String, output: String? = nil, _ options: BatchEncoder.Options = BatchEncoder.Options(), threads: Int = 1,
    keepBatches: Bool = false, hls: Bool = false, thumbnails: Bool = false, sentry: Bool = false, maxTimeS: Int = 3_600,
    minFreeBytes: Int = 0, logger: Logger
  ) throws {
    shutdown = try ShutdownState()
    if hls || thumbnails { try FormatLibrary.load() }
    let id = WorkerID()
    let views = SessionViews(hls: hls, thumbnails: thumbnails, sentry: sentry, shouldContinue: shutdown.shouldContinue)
    let (queue, store) = try Self.open(spool, output: output, as: id, lease: HeartbeatMonitor.defaultLease, views)
    let worker = Worker(
      id, queue: queue, store: store, options: options, keepBatches: keepBatches, maxTime: maxTimeS,
      minFree: minFreeBytes, logger: logger)
    loop = WorkerLoop(worker, threads: threads, drains: false, shutdown: shutdown)
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

  /// Works until ``stop()`` is called or the task is cancelled. Then it finishes batches in work, or puts them back
  /// after five seconds. It logs and retries failures of batches and of the environment.
  ///
  /// - Throws: failures that need a new worker: the sandbox is gone, or another process removed the worker's directory.
  public func run() async throws {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { (ended: CheckedContinuation<Void, any Error>) in
        do {
          try ThreadGroup().start { [self] in ended.resume(with: Result { try work() }) }
        } catch {
          ended.resume(throwing: error)
        }
      }
    } onCancel: {
      stop()
    }
  }

  /// Makes ``run()`` return soon. For any thread.
  public func stop() { shutdown.stop() }

  /// The reason why no new batch is begun, for a readiness check; nil when all is well.
  public var trouble: String? { loop.trouble }

  private func work() throws {
    let end = try loop.run(onStuck: { [logger = loop.worker.logger] in
      logger.error(
        "batch.stuck", metadata: ["batch": "\($0.batch)", "error": "\($0); only the end of this process ends it"])
    })
    if end.isFatal, let failure = end.failure { throw failure }
  }
}
