import FileSystem
import FrameBatches
import Logging
import Sessions
import WorkQueues

/// The facts of a claimed batch.
struct BatchFacts: Sendable {
  /// The name of the batch.
  let batch: String
  /// The facts for the log.
  var about: Logger.Metadata
  /// The sessions of the batch; before it is read, the one that its name tells.
  var sessions: [SessionID]
  /// Whether the batch says that it ends its session.
  private(set) var isFinal = false
  /// The step of the producer's trace: the one that the batch states, or the one that its queue tells.
  private(set) var traceParent: TraceParent?
  /// The worker's own step of that trace; nil if no tracer makes one.
  var step: TraceParent?
  /// When the batch came, in unix milliseconds; nil if its queue does not tell.
  let arrivedMs: Int64?
  var stages = StageTimes()
  private let claimedMs = MonotonicClock.milliseconds()

  /// - Parameter options: how names tell sessions.
  init(of claim: Claim, _ options: InputOptions) {
    batch = claim.name
    arrivedMs = claim.arrivedMs
    about = ["batch": "\(batch)"]
    sessions = options.session(ofBatchNamed: claim.name).map { [$0] } ?? []
    note(claim.traceParent)
  }

  /// Notes the step of the producer's trace.
  mutating func note(_ step: TraceParent?) {
    guard let step else { return }
    traceParent = step
    about.merge(trace) { $1 }
  }

  /// Notes what the batch says of itself.
  mutating func note(_ batch: BatchEncoder.ReadBatch) {
    sessions = batch.allSessions
    isFinal = batch.isFinal
    about["session"] = "\(batch.sessions.map(\.description).joined(separator: " "))"
    note(batch.traceParent)
  }

  /// The trace, for each line of the log on the batch.
  var trace: Logger.Metadata { Self.trace(traceParent) }

  static func trace(_ step: TraceParent?) -> Logger.Metadata { step.map { [TraceParent.key: "\($0)"] } ?? [:] }

  /// Milliseconds since the claim.
  var ageMs: Int { MonotonicClock.milliseconds() - claimedMs }
}
