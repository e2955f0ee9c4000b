// Watches the batches in work from a thread of its own, which calls no library that can hang in a batch. The sandbox
// ends decoders that hang. This watch is for the worker's own process: the encoder, and a disk that does not answer.

import FileSystem
import Synchronization

package final class JobWatch: Sendable {
  /// A batch in work. Its thread writes the stage, the watch reads it.
  private struct Job {
    let batch: String
    let begunAt = MonotonicClock.seconds()
    let stage: BatchStage
  }

  /// A batch beyond its deadline.
  package struct Stuck: Sendable, CustomStringConvertible {
    package let batch: String
    let stage: BatchStage.Stage
    /// Seconds since its deadline.
    let overdueS: Int

    package var description: String { "\(batch) has been stuck in \(stage) for \(overdueS) s beyond its deadline" }
  }

  /// Seconds that a cancelled batch may take to stop. After them, the watch reports it to `act`.
  private static let grace = 10
  /// Tolerance in seconds: two readings of a clock of seconds may differ by one too much, and a stop takes a moment.
  private static let slack = 2

  private let maxTime: Int
  private let jobs = Mutex<[Job]>([])

  /// - Parameter maxTime: the timeout of a batch, in seconds.
  init(maxTime: Int) { self.maxTime = maxTime }

  /// - Parameter stage: the stage of the thread's encoder.
  func begin(_ batch: String, _ stage: BatchStage) {
    stage.enter(.queue)
    jobs.withLock { $0.append(Job(batch: batch, stage: stage)) }
  }

  func end(_ stage: BatchStage) { jobs.withLock { jobs in jobs.removeAll { $0.stage === stage } } }

  /// The sum of the finished parts of the batches in work.
  var fractions: Double { jobs.withLock { $0.reduce(0) { $0 + $1.stage.fraction } } }

  package var stuck: [Stuck] {
    let now = MonotonicClock.seconds()
    return jobs.withLock { $0 }.compactMap { job in
      let (stage, activeAt) = job.stage.now
      // A publication that has begun is not stopped.
      let due =
        stage == .publish
        ? max(job.begunAt + maxTime, activeAt + stage.maximumIdleS)
        : min(job.begunAt + maxTime, activeAt + min(maxTime, stage.maximumIdleS))
      let overdue = now - due
      return overdue > Self.slack ? Stuck(batch: job.batch, stage: stage, overdueS: overdue) : nil
    }
  }

  /// Starts the thread, which the caller stops.
  ///
  /// - Parameters:
  ///   - isStopping: whether the worker is stopping; then stuck batches are ignored.
  ///   - act: called once, on the watch's thread, when a batch has not stopped long after its deadline.
  func start(
    isStopping: @escaping @Sendable () -> Bool, _ act: @escaping @Sendable (Stuck) -> Void
  ) throws -> PeriodicThread {
    // Consecutive seconds in which a batch was stuck while this thread was awake, and the time of the last look.
    let ticks = Mutex((count: 0, lastS: MonotonicClock.seconds()))
    return try PeriodicThread("watch", everyMs: 1_000) { [self] in
      let job = stuck.first { $0.overdueS > Self.grace }
      let count = ticks.withLock { ticks in
        let now = MonotonicClock.seconds()
        defer { ticks.lastS = now }
        // After a pause of the whole machine every batch seems to be stuck.
        ticks.count = job == nil || now - ticks.lastS > 5 ? 0 : ticks.count + 1
        return ticks.count
      }
      if let job, count == 3, !isStopping() { act(job) }
    }
  }
}

extension BatchStage.Stage {
  /// Maximum seconds since the last activity.
  fileprivate var maximumIdleS: Int {
    switch self {
    case .open, .encode: 300
    // Network calls have timeouts of their own.
    case .publish: 600
    case .queue: .max / 2
    }
  }
}
