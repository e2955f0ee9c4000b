import FileSystem
import WorkQueues

/// A batch exceeded its timeout.
struct BatchTimeout: ClassifiedError {
  var kind: Failure.Kind { .input }
  let seconds: Int
  var description: String { "stopped after \(seconds) s, the limit of --max-time" }
}

/// A failure for an unknown reason, which is counted.
struct UnknownFailure: ClassifiedError {
  var kind: Failure.Kind { .environment }
  let batch: String
  /// The number of failures so far.
  let count: Int
  let error: any Error
  var description: String { "\(batch): \(error); try \(count) of \(Claim.unknownFailures)" }

  /// Milliseconds until the retry: a transient cause may pass.
  var pauseMs: Int { 1_000 << (2 * (count - 1)) }
}

/// Another process took this worker for dead and removed its directory.
struct WorkerEvicted: ClassifiedError {
  var kind: Failure.Kind { .environment }
  var description: String { "another process took this worker for dead and removed its directory; start it again" }
}

extension BadBatch {
  /// A batch that may have killed its workers.
  init(fatal claim: Claim) {
    self.init(
      "encode", claim.name, "\(Claim.attempts) workers died while they worked on it",
      advice: "report this error with the batch")
  }
}
