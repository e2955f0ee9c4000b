import FileSystem

/// A session or a video that cannot be used.
public struct BadSession: Error, Equatable, CustomStringConvertible {
  /// The file or session at fault.
  public let file: String
  /// The fault of the file.
  public let cause: String
  /// The remedy.
  public let advice: String

  package init(_ file: String, _ cause: String, advice: String = "see what verify says of the session") {
    self.file = file
    self.cause = cause
    self.advice = advice
  }

  /// The file, the cause and the advice.
  public var description: String { "\(file): \(cause); \(advice)" }
}

extension BadSession: ClassifiedError {
  package var kind: Failure.Kind { .input }
}
