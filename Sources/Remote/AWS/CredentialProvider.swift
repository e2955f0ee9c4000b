import FileSystem
import FrameBatches

/// One step of the chain: a place that gives credentials.
protocol CredentialProvider: Sendable {
  /// The step, for messages: `the web identity of AWS_WEB_IDENTITY_TOKEN_FILE`.
  var name: String { get }
  /// The remedy when a service refuses these credentials.
  var remedy: String { get }
  /// Whether each call gives the same credentials.
  var isFixed: Bool { get }

  /// - Throws: ``Failure``, which names the step; ``Cancelled``.
  func fetch(_ cancellation: Cancellation) throws -> FetchedCredentials
}

extension CredentialProvider {
  var remedy: String { "check \(name)" }
  var isFixed: Bool { false }

  func failure(_ cause: String, _ advice: String) -> Failure {
    Failure(.environment, "get credentials from", name, cause, advice: advice)
  }
}

/// New credentials, with the time that they have left.
struct FetchedCredentials: Sendable, SecretValue {
  let credentials: AWSCredentials
  /// Nil if they do not expire, or nobody says when.
  let lifetimeMs: Int?
  /// When credentials expire that cannot be renewed, in unix milliseconds; nil if nobody says. The service judges it.
  var expiresMs: Int64?
}
