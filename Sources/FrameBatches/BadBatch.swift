/// The input is bad: nothing will make this batch encodable as it is, so it is quarantined.
public struct BadBatch: Error, Equatable, CustomStringConvertible {
  /// The operation that failed: `read`, `decode`, `publish` …
  public let operation: String
  /// The file or entry it was done to.
  public let file: String
  /// The fault that was found in it.
  public let cause: String
  /// The remedy that the producer of the batch has.
  public let advice: String

  /// The cause where a file may not be read.
  package static let denied = "permission denied"
  static let leased = "in use: another process holds a lease on it"

  public init(_ operation: String, _ file: String, _ cause: String, advice: String) {
    self.operation = operation
    self.file = file
    self.cause = cause
    self.advice = advice
  }

  public var description: String { "\(operation) \(file): \(cause)" }
}
