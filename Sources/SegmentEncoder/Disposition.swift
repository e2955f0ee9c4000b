// What becomes of a batch when something fails: the one place where an error is turned into a decision.

import Glibc

/// The input is bad: nothing will make this batch encodable as it is, so it is quarantined.
public struct BadBatch: Error, Equatable, CustomStringConvertible {
  /// What was being done: `read`, `decode`, `publish` …
  public let operation: String
  /// The file or entry it was done to.
  public let file: String
  /// What is wrong with it.
  public let cause: String
  /// What whoever made it can do.
  public let advice: String

  /// The cause where a file may not be read.
  static let denied = "permission denied"
  static let leased = "in use: another process holds a lease on it"

  public init(_ operation: String, _ file: String, _ cause: String, advice: String) {
    self.operation = operation
    self.file = file
    self.cause = cause
    self.advice = advice
  }

  public var description: String { "\(operation) \(file): \(cause)" }
}

/// The work was stopped before its end; the batch is owed as before.
public struct Cancelled: Error, Equatable, CustomStringConvertible {
  public init() {}

  public var description: String { "stopped before its end" }
}

/// What is wrong lies in the environment (a server, a network), not in any batch.
package protocol EnvironmentFailure: Error {}

/// Where a batch goes when its encoding ended with an error.
public enum Disposition: Equatable, Sendable {
  /// To quarantine, with this reason.
  case quarantine(BadBatch)
  /// Back, untouched: the machine is in trouble (disk full, I/O error, out of memory), not the batch.
  case retry
  /// Nobody knows: it is tried again, and when that does not help it goes to quarantine with this reason.
  case unknown(BadBatch)
  /// Back, untouched: somebody asked the worker to stop.
  case handBack

  /// One line of JSON for a program.
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

  public init(of error: any Error, batch: String) {
    switch error {
    case let bad as BadBatch: self = .quarantine(bad)
    case let large as SegmentTooLarge:
      self = .quarantine(BadBatch("encode", batch, "\(large)", advice: SegmentTooLarge.advice))
    case is Cancelled: self = .handBack
    case is DamagedOutput, is SandboxError, is MissingLibrary, is any EnvironmentFailure: self = .retry
    // What no machine in trouble says: whatever was asked for came of the batch.
    case let failure as DiskError where ![EINVAL, ENAMETOOLONG, ELOOP, EOVERFLOW, EFBIG].contains(failure.code):
      self = .retry
    // FFmpeg's word on a picture has become a refusal by now.
    case let failure as FFmpegError where failure.isOutOfMemory: self = .retry
    default:
      self = .unknown(BadBatch("encode", batch, "\(error)", advice: "report this with the batch"))
    }
  }
}
