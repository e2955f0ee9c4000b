import WorkQueues

extension Worker {
  /// A batch in the hands of an encoding thread.
  enum WorkItem: Sendable {
    /// A batch to claim.
    case waiting(QueueEntry)
    /// A claim that is retried after a failure of the environment.
    case held(Claim)
    /// A claim recovered from a dead worker. It is worked on alone: if this worker dies, too, this batch is the cause.
    case recovered(Claim)

    var claim: Claim? {
      switch self {
      case .waiting: nil
      case .held(let claim), .recovered(let claim): claim
      }
    }

    /// Whether the batch may have killed a worker.
    var runsAlone: Bool {
      switch self {
      case .waiting: false
      case .held(let claim): claim.attempt > 1
      case .recovered: true
      }
    }

    /// The batch's name; nil if the queue tells it only with the claim.
    var batch: String? { if case .waiting(let entry) = self { entry.name } else { claim?.name } }

    /// Whether it is this worker's first attempt.
    var isFirstAttempt: Bool { if case .held = self { false } else { true } }
  }
}
