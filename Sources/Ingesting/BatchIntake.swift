import FrameBatches
import Serving

/// The place that batches go to: a spool, or a store and a queue.
package protocol BatchIntake: Sendable {
  /// The directory for bodies on their way, on a disk with room.
  var drafts: String { get throws }
  /// Whether the file of a batch has its trace: ``KeptTrace``. Else the entry of the queue has it.
  var keepsTracesInFiles: Bool { get }
  /// Takes a batch; it is durable and workers see it when this returns. The call may be repeated.
  ///
  /// - Parameters:
  ///   - path: a file, synced; it may be moved.
  ///   - traceParent: the step of the sender's trace.
  func take(
    _ path: String, as name: DeliveredName, digest: String, traceParent: TraceParent?
  ) throws -> IntakeOutcome
  /// The receipt of a batch of a producer; nil if none was taken under this name in the last days. The correction of the clock does
  /// not matter.
  func receipt(of name: DeliveredName) throws -> ReceiptLog.Entry?
  /// The correction of the clock of a session's device, which is kept for some days: a small difference from it is the time that
  /// requests take.
  ///
  /// - Parameter offsetMs: by this request.
  func clockOffsetMs(of session: SessionID, near offsetMs: Int64) throws -> Int64
  /// The number of batches that wait for a worker, and those of each producer as far as they can be told.
  func waitingCounts() throws -> (all: Int, byProducer: [String: Int])
  /// Removes old receipts, a part of them at each call.
  func sweep(_ number: Int) throws
}

extension DeliveredName {
  /// The name of its receipt.
  var receipt: String { DeliveredName(name, of: producer).text }
}

/// The correction of the clock of a device.
enum ClockOffset {
  /// Milliseconds by which a device's clock may differ from this one's, and requests may be late.
  private static let toleranceMs: Int64 = 60_000
  /// Milliseconds after which the correction of a session that goes on is written again, so that it does not expire.
  static let keptMs: Int64 = 86_400_000

  /// Returns the correction for a request, so that repeated requests and those that follow have one correction.
  ///
  /// - Parameters:
  ///   - known: that of the requests before.
  ///   - offsetMs: by which this clock was ahead of the device's when the request was sent.
  static func next(after known: Int64, near offsetMs: Int64) -> Int64 {
    // A store may answer with any number.
    let known = known.magnitude <= HTTPRequest.sendingTimes.upperBound.magnitude ? known : 0
    return abs(offsetMs - known) < toleranceMs ? known : abs(offsetMs) < toleranceMs ? 0 : offsetMs
  }
}

/// The outcome of a batch that came.
package enum IntakeOutcome: Sendable, Equatable {
  case taken
  /// The same batch was taken before.
  case known
  /// Another batch has the name.
  case conflict
}
