import FileSystem

/// A request to an object store that failed after all retries that make as it makes sense.
///
/// The environment is to blame, never the batch: see ``Disposition``.
package struct ObjectStoreError: EnvironmentFailure, Equatable, CustomStringConvertible {
  /// The request, as the store calls it: `GET`, `PUT`, `LIST` …
  package let operation: String
  /// The object, or the bucket.
  package let subject: String
  /// HTTP's; nil when there was no answer.
  package let status: Int?
  /// The store's own word for it, when it said one: `NoSuchBucket`.
  package let code: String?
  package let cause: String
  package let advice: String

  package init(
    _ operation: String, _ subject: String, status: Int? = nil, code: String? = nil, _ cause: String, advice: String
  ) {
    self.operation = operation
    self.subject = subject
    self.status = status
    self.code = code
    self.cause = cause
    self.advice = advice
  }

  /// Whether the store knows us not, or lets us not: nothing to be tried again.
  package var isPermission: Bool { status == 401 || status == 403 }

  /// Whether another object may be had all the same: an archived one, a key that is too long.
  package var isOfOneObject: Bool {
    let others: Set = [
      "AccessDenied", "AuthorizationHeaderMalformed", "ExpiredToken", "InvalidAccessKeyId", "InvalidToken",
      "NoSuchBucket",
      "RequestTimeTooSkewed", "SignatureDoesNotMatch",
    ]
    return status.map { (400...499).contains($0) && ![401, 408, 429].contains($0) } ?? false
      && code.map { !others.contains($0) } ?? false
  }

  package var description: String {
    let answer = [status.map { "status \($0)" }, code].compactMap { $0 }.joined(separator: " ")
    return "\(operation) \(subject): \(answer.isEmpty ? "" : answer + ": ")\(cause); \(advice)"
  }
}
