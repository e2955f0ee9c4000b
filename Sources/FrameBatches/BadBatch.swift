import FileSystem

/// The input is bad: a retry cannot succeed, so the worker quarantines the batch.
public struct BadBatch: Error, Equatable, CustomStringConvertible {
  /// The operation that failed: `read`, `decode`, `publish` …
  public let operation: String
  /// The file or entry that the operation failed on.
  public let file: String
  /// The fault of the file.
  public let cause: String
  /// The remedy for the producer of the batch.
  public let advice: String

  /// The names of the decisions with which an operator lets a worker publish the batch as it is; none if nothing of it can be shown.
  package var marks: [String] = []

  /// The remedy for what no format recognises.
  static let adviceOnForms = "send frames named <unix ms>.jpg or .png, frames and a batch.json, or a recorder's batch"
  /// The cause for a file without read permission.
  package static let denied = "permission denied"
  static let leased = "in use: another process holds a lease on it"

  /// Creates the error of one file; see the properties.
  public init(_ operation: String, _ file: String, _ cause: String, advice: String) {
    self.operation = operation
    self.file = file
    self.cause = cause
    self.advice = advice
  }

  /// The operation, the file and the cause, without the advice.
  public var description: String { "\(operation) \(file): \(cause)" }
}

extension BadBatch: ClassifiedError {
  package var kind: Failure.Kind { .input }
}
