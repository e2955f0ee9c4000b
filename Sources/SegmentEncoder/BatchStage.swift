import FileSystem
import Synchronization

/// The stage that an encoder is in. One thread writes it, and others read it.
public final class BatchStage: Sendable {
  public enum Stage: String, Sendable {
    /// Reading a batch and planning its segments.
    case open
    /// Decoding and encoding its frames.
    case encode
    /// Writing what is published.
    case publish
    /// Taking a batch from its queue, or handing it on.
    case queue
  }

  private let state = Mutex((stage: Stage.queue, signAt: MonotonicClock.seconds()))

  public init() {}

  public func enter(_ stage: Stage) { state.withLock { $0 = (stage, MonotonicClock.seconds()) } }

  /// Notes a sign of life.
  public func sign() { state.withLock { $0.signAt = MonotonicClock.seconds() } }

  /// The stage, and the time of the last sign of life in monotonic seconds.
  public var now: (stage: Stage, signAt: Int) { state.withLock { $0 } }
}
