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

  /// - Throws: ``CredentialError``, which names the step; ``Cancelled``.
  func fetch(_ cancellation: Cancellation) throws -> FetchedCredentials
}

extension CredentialProvider {
  var remedy: String { "check \(name)" }
  var isFixed: Bool { false }

  func failure(_ cause: String, _ advice: String) -> CredentialError {
    CredentialError(step: name, cause: cause, advice: advice)
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

/// A step of the chain failed, or nothing is configured. Requests are never sent unsigned instead.
package struct CredentialError: EnvironmentFailure, Equatable, CustomStringConvertible {
  let step: String
  let cause: String
  let advice: String
  /// Whether nothing is configured at all.
  package var isMissing = false

  package var description: String { "get credentials from \(step): \(cause); \(advice)" }
}
