import Batching
import FileSystem
import FrameBatches
import Logging
import Remote
import Synchronization
import WorkQueues

/// Sends the batches of a collector to a worker elsewhere, while the collector makes more.
final class CollectSender: Sendable {
  /// Milliseconds between two looks for batches, and for sending after the request to stop.
  private static let (everyMs, graceMs) = (500, 5_000)

  private let spool: Spool
  private let address: String
  private let logger: Logger
  /// The monotonic time when requests have to end.
  private let endMs = Atomic(Int.max)
  private let running = Mutex<(forwarder: BatchForwarder, thread: PeriodicThread)?>(nil)

  init(from spool: Spool, to address: String, _ logger: Logger) {
    (self.spool, self.address, self.logger) = (spool, address, logger)
  }

  /// - Throws: ``Failure``, ``DiskError``.
  func start(_ options: SenderOptions) throws {
    let client = try options.client { [self] in MonotonicClock.milliseconds() >= endMs.load(ordering: .relaxed) }
    guard let client else { return }
    let forwarder = BatchForwarder(spool, to: client, limits: Limits()) { [self] news in log(news) }
    let thread = try PeriodicThread("sender", everyMs: Self.everyMs) { forwarder.step() }
    running.withLock { $0 = (forwarder, thread) }
  }

  /// Sends the batches that wait, as far as there is time.
  ///
  /// - Returns: the number of batches that are left.
  func stop() throws -> Int {
    endMs.store(MonotonicClock.milliseconds() + Self.graceMs, ordering: .relaxed)
    if let (forwarder, thread) = running.withLock({ $0.take() }) {
      thread.stop()
      // Told by `log`.
      try? forwarder.run()
    }
    return try spool.waiting().count
  }

  private func log(_ news: BatchForwarder.News) {
    switch news {
    case .sent(let batch): logger.debug("sent", metadata: ["batch": "\(batch)", "to": "\(address)"])
    case .refused(let refused, let name):
      logger.error(
        "refused by \(address), and kept: \(refused)",
        metadata: ["advice": "encoder-worker quarantine retry --spool \(spool.path.shellWord) -- \(name.shellWord)"])
    case .failing(let cause): logger.warning("batches wait, nothing is lost: \(cause)")
    case .recovered: logger.notice("batches are sent again")
    }
  }
}
