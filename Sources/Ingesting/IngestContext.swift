import Encoding
import FileSystem
import FrameBatches
import Logging
import Serving
import Sessions
import Synchronization

/// The state that the handlers of all requests share.
package final class IngestContext: Sendable {
  /// Refusals that are logged in a minute; the others are counted.
  private static let loggedRefusals = 60

  let intake: any BatchIntake
  let settings: IngestSettings
  let decoders: DecoderForkServer?
  package let meter = IngestMeter()
  let gate: IngestGate
  /// Lets few producers at a time read their batches: a batch may take as much memory as its limits allow.
  let readers = RequestGate<String>(width: 2, waiting: 384)
  let keys = IdempotencyKeys()
  private let tombstone: @Sendable (SessionID) throws -> Tombstone?
  private let logger: Logger
  private let refusals = Mutex((minute: 0, count: 0))
  private let hasLostTrace = Atomic(false)

  /// - Parameters:
  ///   - decoders: read archives; nil to read them in this process.
  ///   - isStopping: whether nothing more is taken.
  ///   - tombstone: returns that of a session that was deleted.
  package init(
    _ intake: any BatchIntake, _ settings: IngestSettings, decoders: DecoderForkServer? = nil, logger: Logger,
    isStopping: @escaping @Sendable () -> Bool = { false },
    tombstone: @escaping @Sendable (SessionID) throws -> Tombstone? = { _ in nil }
  ) {
    self.tombstone = tombstone
    self.intake = intake
    self.settings = settings
    self.decoders = decoders
    self.logger = logger
    gate = IngestGate(intake, settings, isStopping: isStopping)
  }

  /// Throws ``SessionDeleted`` if all of some sessions were deleted: a batch is published without those that were.
  func requireAny(of sessions: [SessionID]) throws {
    var deleted: Tombstone?
    for session in sessions {
      guard let found = try tombstone(session) else { return }
      deleted = found
    }
    if let deleted { throw SessionDeleted(deleted) }
  }

  /// Logs and counts an answer to a request that would write.
  func record(_ response: HTTPResponse, to path: String, of producer: Producer?, _ problem: ProblemDetails? = nil) {
    meter.count(response)
    var facts: Logger.Metadata = ["path": "\(path.shortened(to: 300))", "status": .stringConvertible(response.status)]
    if let producer { facts["producer"] = "\(producer.name)" }
    guard let problem else { return logger.debug("ingest.answered", metadata: facts) }
    meter.countRefusal(response.status, of: producer)
    facts["reason"] = "\(problem.detail)"
    let minute = MonotonicClock.seconds() / 60
    let (count, skipped) = refusals.withLock { known in
      let skipped = known.minute == minute ? 0 : max(0, known.count - Self.loggedRefusals)
      known = known.minute == minute ? (minute, known.count + 1) : (minute, 1)
      return (known.count, skipped)
    }
    if skipped > 0 { logger.notice("ingest.refused", metadata: ["notLogged": .stringConvertible(skipped)]) }
    logger.log(level: count <= Self.loggedRefusals ? .notice : .debug, "ingest.refused", metadata: facts)
  }

  /// Logs once that the traces of requests get lost.
  func noteLostTrace(in path: String) {
    guard !hasLostTrace.exchange(true, ordering: .relaxed) else { return }
    let reason = "the file system of \(path) keeps no extended attributes"
    logger.notice("ingest.untraced", metadata: ["reason": "\(reason)"])
  }

  /// Logs a failure of the disk, the store or the queue, and returns the answer to it.
  func problem(_ error: any Error) -> ProblemDetails {
    if let problem = error as? ProblemDetails { return problem }
    if let deleted = error as? SessionDeleted {
      return ProblemDetails(
        .gone, deleted.what, advice: "send nothing more of this session; `delete --undelete` allows it again")
    }
    if let busy = error as? ServerBusy {
      return ProblemDetails(.tooMany, "other batches are being read", retryAfterS: busy.retryAfterS)
    }
    logger.error("ingest.failed", metadata: ["error": "\(error)"])
    return .failure
  }
}
