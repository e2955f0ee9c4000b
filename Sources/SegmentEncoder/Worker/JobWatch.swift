// Watches the batches in work from a thread of its own, which calls no library that can hang in a batch. The sandbox ends decoders
// that hang. This watch is for the worker's own process: the encoder, and a disk that does not answer.

import FileSystem
import Synchronization

package final class JobWatch: Sendable {
  /// A batch in work. Its thread writes the stage, the watch reads it.
  final class Job: Sendable {
    let batch: String
    fileprivate let begunAt = MonotonicClock.seconds()
    fileprivate let stage: BatchStage

    fileprivate init(_ batch: String, _ stage: BatchStage) {
      self.batch = batch
      self.stage = stage
    }
  }

  /// A batch beyond its deadline.
  package struct Stuck: Sendable, CustomStringConvertible {
    package let batch: String
    let stage: BatchStage.Stage
    /// Seconds since its deadline.
    let overdueS: Int

    package var description: String { "\(batch) has been stuck in \(stage) for \(overdueS) s beyond its deadline" }
  }

  /// Seconds that a cancelled batch may take to stop. Then its thread is given up.
  private static let grace = 10
  /// Tolerance in seconds: two readings of a clock of seconds may differ by one too much, and a stop takes a moment.
  private static let slack = 2

  private let maxTime: Int
  private let jobs = Mutex<[Job]>([])
  private let thread = Mutex<PeriodicThread?>(nil)

  /// - Parameter maxTime: the timeout of a batch, in seconds.
  init(maxTime: Int) { self.maxTime = maxTime }

  /// - Parameter stage: the stage of the thread's encoder.
  func begin(_ batch: String, _ stage: BatchStage) -> Job {
    stage.enter(.queue)
    let job = Job(batch, stage)
    jobs.withLock { $0.append(job) }
    return job
  }

  func end(_ job: Job) { jobs.withLock { jobs in jobs.removeAll { $0 === job } } }

  /// The parts of the batches in work that are done, added up.
  var fractions: Double { jobs.withLock { $0.reduce(0) { $0 + $1.stage.fraction } } }

  /// The batches that are stuck.
  package var stuck: [Stuck] {
    let now = MonotonicClock.seconds()
    return jobs.withLock { $0 }.compactMap { job in
      let (stage, sign) = job.stage.now
      // The publication of a batch is not stopped any more.
      let due =
        stage == .publish
        ? max(job.begunAt + maxTime, sign + stage.silenceS)
        : min(job.begunAt + maxTime, sign + min(maxTime, stage.silenceS))
      let overdue = now - due
      return overdue > Self.slack ? Stuck(batch: job.batch, stage: stage, overdueS: overdue) : nil
    }
  }

  /// Starts the thread.
  ///
  /// - Parameters:
  ///   - isStopping: whether the worker is stopping; then stuck batches are ignored.
  ///   - act: called once, on the watch's thread, when a batch has not stopped long after its deadline.
  func start(isStopping: @escaping @Sendable () -> Bool, _ act: @escaping @Sendable (Stuck) -> Void) throws {
    // Consecutive seconds in which a batch was stuck while this thread was awake, and the time of the last look.
    let ticks = Mutex((count: 0, lastS: MonotonicClock.seconds()))
    let thread = try PeriodicThread("watch", everyMs: 1_000) { [self] in
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
    self.thread.withLock { $0 = thread }
  }

  /// Ends the thread.
  func stop() { thread.withLock { $0 = nil } }
}

extension BatchStage.Stage {
  /// Maximum seconds without a sign of life.
  fileprivate var silenceS: Int {
    switch self {
    case .open, .encode: 300
    // The network has time limits of its own.
    case .publish: 600
    case .queue: .max / 2
    }
  }
}
