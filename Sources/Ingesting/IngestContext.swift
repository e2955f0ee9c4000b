import Encoding
import FileSystem
import FrameBatches
import Logging
import Serving
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
  let readers = ReaderGate()
  let keys = IdempotencyKeys()
  private let logger: Logger
  private let refusals = Mutex((minute: 0, count: 0))
  private let hasLostTrace = Atomic(false)

  /// - Parameters:
  ///   - decoders: read archives; nil to read them in this process.
  ///   - isStopping: whether nothing more is taken.
  package init(
    _ intake: any BatchIntake, _ settings: IngestSettings, decoders: DecoderForkServer? = nil, logger: Logger,
    isStopping: @escaping @Sendable () -> Bool = { false }
  ) {
    self.intake = intake
    self.settings = settings
    self.decoders = decoders
    self.logger = logger
    gate = IngestGate(intake, settings, isStopping: isStopping)
  }

  /// Logs and counts an answer to a request that would write.
  func record(_ response: HTTPResponse, to path: String, of producer: Producer?, _ problem: ProblemDetails? = nil) {
    meter.count(response)
    var facts: Logger.Metadata = ["path": "\(path.shortened(to: 300))", "status": .stringConvertible(response.status)]
    if let producer { facts["producer"] = "\(producer.name)" }
    guard let problem else { return logger.debug("ingest.answered", metadata: facts) }
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
    logger.error("ingest.failed", metadata: ["error": "\(error)"])
    return .failure
  }
}
