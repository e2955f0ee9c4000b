/// A session or a video that cannot be used.
public struct BadSession: Error, Equatable, CustomStringConvertible {
  public let file: String
  public let cause: String
  public let advice: String

  package init(_ file: String, _ cause: String, advice: String = "see what verify says of the session") {
    self.file = file
    self.cause = cause
    self.advice = advice
  }

  public var description: String { "\(file): \(cause); \(advice)" }
}
