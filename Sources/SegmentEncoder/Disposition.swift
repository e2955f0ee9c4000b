// Decides where a batch goes when something fails: the one place where an error is turned into a decision.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import JSON
import Sessions

/// The destination of a batch after an error.
public enum Disposition: Equatable, Sendable {
  /// Quarantine the batch, with this reason.
  case quarantine(BadBatch)
  /// Put the batch back into the queue: the environment failed (disk full, I/O error, out of memory), not the batch.
  case retry
  /// Retry a limited number of times, then quarantine the batch with this reason: the cause is unknown.
  case unknown(BadBatch)
  /// Put the batch back into the queue: a stop was requested.
  case handBack

  /// Returns the error as one line of JSON, as `encode --json` prints it.
  ///
  /// - Parameters:
  ///   - batch: the name of the batch.
  ///   - error: the error of which this is the disposition.
  public func json(batch: String, _ error: any Error) -> String {
    var members: [String: JSONValue] = ["batch": .string(batch)]
    switch self {
    case .quarantine(let bad), .unknown(let bad):
      members["error"] = .object([
        "operation": .string(bad.operation), "file": .string(bad.file), "cause": .string(bad.cause),
        "advice": .string(bad.advice),
      ])
    case .retry: members["error"] = .object(["cause": .string("\(error)"), "advice": .string("run it again")])
    case .handBack: members["error"] = .object(["cause": .string("stopped"), "advice": .string("run it again")])
    }
    return JSONValue.object(members).line
  }

  /// Decides where a batch goes after an error.
  ///
  /// ```swift
  /// do {
  ///   receipts = try encoder.publish(upload)
  /// } catch {
  ///   if case .quarantine(let reason) = Disposition(of: error, batch: upload) { reject(upload, reason.description) }
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - error: any error of ``BatchEncoder/publish(_:session:isCancelled:)`` or ``FrameEncoder``.
  ///   - batch: the name of the batch, for the reason.
  public init(of error: any Error, batch: String) {
    switch error {
    case let failure as ViewUpdateFailure: self = Disposition(of: failure.error, batch: batch)
    case let bad as BadBatch: self = .quarantine(bad)
    case let large as SegmentTooLarge:
      self = .quarantine(BadBatch("encode", batch, "\(large)", advice: SegmentTooLarge.advice))
    // Its pictures may be on their way.
    case let early as SessionUnpublished: self = .unknown(early.reason)
    case let late as BatchTimeout:
      self = .unknown(BadBatch("encode", batch, "\(late)", advice: "give it more --max-time, or split the batch"))
    // A damaged session is no fault of its new batch.
    case is DamagedOutput: self = .retry
    // Codes that no failing machine returns: the batch caused the call. Errors of FFmpeg on a picture are refusals by now.
    case let failure as DiskError where Self.codesOfBatches.contains(failure.code): self = .unknown(error, batch)
    case let failure as FFmpegError where !failure.isOutOfMemory: self = .unknown(error, batch)
    // The pictures of the batch may be what takes so much.
    case is DecoderOutOfResources: self = .unknown(error, batch)
    default:
      switch (error as? any ClassifiedError)?.kind {
      case .cancelled: self = .handBack
      // A setting is mended by a person, and then the batch is encoded.
      case .environment, .usage: self = .retry
      case .input, .gone, nil: self = .unknown(error, batch)
      }
    }
  }

  private static let codesOfBatches = [EINVAL, ENAMETOOLONG, ELOOP, EOVERFLOW, EFBIG]

  private static func unknown(_ error: any Error, _ batch: String) -> Disposition {
    .unknown(BadBatch("encode", batch, "\(error)", advice: "report this error with the batch"))
  }

  /// Whether a failure of the environment affects all batches: a full disk does, a damaged file of one session does not.
  package static func isSystemWide(_ error: any Error) -> Bool {
    switch error {
    case let failure as ViewUpdateFailure: isSystemWide(failure.error)
    case let failure as DiskError:
      [
        ENOSPC, EDQUOT, EIO, EROFS, ESTALE, EMFILE, ENFILE, ENOMEM, ENOTCONN, ETIMEDOUT, EHOSTDOWN, ENODEV, EAGAIN,
      ].contains(failure.code)
    case is DamagedOutput, is SegmentWriteConflict, is ObjectTooLarge, is UnknownFailure: false
    case let failure as ObjectStoreError: !failure.isOfOneObject
    case let failure as FFmpegError: failure.isOutOfMemory
    default: true
    }
  }

  /// Whether only a new worker can continue: a worker starts its fork server, makes its spool directory, and refuses a store that ignores
  /// conditions, only at its start.
  static func endsWorker(_ error: any Error) -> Bool {
    error is SandboxError || error is WorkerEvicted || mayHaveLost(error)
  }

  /// Whether published batches may be missing in their sessions.
  package static func mayHaveLost(_ error: any Error) -> Bool {
    ((error as? ViewUpdateFailure)?.error ?? error) is ConditionsIgnored
  }

  /// Whether the disk itself failed.
  package static func isInputOutputError(_ error: any Error) -> Bool {
    switch error {
    case let failure as ViewUpdateFailure: isInputOutputError(failure.error)
    case let failure as DiskError: [EIO, EROFS, ESTALE, ENXIO].contains(failure.code)
    default: false
    }
  }
}
