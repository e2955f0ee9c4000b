import FileSystem
import Synchronization

/// The stage that an encoder is in. One thread writes it, and others read it.
package final class BatchStage: Sendable {
  package enum Stage: String, Sendable {
    /// Reading a batch and planning its segments.
    case open
    /// Decoding and encoding its frames.
    case encode
    /// Writing what is published.
    case publish
    /// Taking a batch from its queue, or handing it on.
    case queue
  }

  private let state = Mutex((stage: Stage.queue, activeAt: MonotonicClock.seconds(), done: 0, total: 0))

  package init() {}

  package func enter(_ stage: Stage) {
    state.withLock {
      ($0.stage, $0.activeAt) = (stage, MonotonicClock.seconds())
      if stage == .queue { ($0.done, $0.total) = (0, 0) }
    }
  }

  /// Begins to count the frames of a batch.
  func begin(frames total: Int) { state.withLock { ($0.done, $0.total) = (0, total) } }

  /// Counts a frame as encoded or refused.
  func advance() { state.withLock { $0.done += 1 } }

  /// The part of the batch's frames that is done, from 0 to 1.
  package var fraction: Double {
    state.withLock { $0.total > 0 ? min(1, Double($0.done) / Double($0.total)) : 0 }
  }

  /// Records that the encoder is active.
  package func recordActivity() { state.withLock { $0.activeAt = MonotonicClock.seconds() } }

  /// The stage, and the time of the last activity in monotonic seconds.
  package var now: (stage: Stage, activeAt: Int) { state.withLock { ($0.stage, $0.activeAt) } }
}
