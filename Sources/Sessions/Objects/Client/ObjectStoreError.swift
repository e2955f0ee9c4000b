import FileSystem

/// A request to an object store that failed after all retries. It is a failure of the environment, never of a batch.
package struct ObjectStoreError: ClassifiedError, Equatable {
  package var kind: Failure.Kind { .environment }
  /// `GET`, `PUT`, `LIST` …
  package let operation: String
  /// The object, or the bucket.
  package let subject: String
  /// The HTTP status; nil if there was no response.
  package let status: Int?
  /// The store's error code, such as `NoSuchBucket`.
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

  /// Whether requests for other objects may succeed: an archived object, a key that is too long.
  package var isOfOneObject: Bool {
    // Stores answer 403 with many codes when an identity may do nothing.
    if status == 403 { return code == "InvalidObjectState" }
    let others: Set = [
      "AuthorizationHeaderMalformed", "ExpiredToken", "ExpiredTokenException", "InvalidToken", "NoSuchBucket",
      "TokenRefreshRequired",
    ]
    return status.map { (400...499).contains($0) && ![401, 408, 429].contains($0) } ?? false
      && code.map { !others.contains($0) } ?? false
  }

  package var description: String {
    let answer = [status.map { "status \($0)" }, code].compactMap { $0 }.joined(separator: " ")
    return "\(operation) \(subject): \(answer.isEmpty ? "" : answer + ": ")\(cause); \(advice)"
  }
}

/// An object is larger than the reader's limit.
package struct ObjectTooLarge: ClassifiedError {
  package var kind: Failure.Kind { .environment }
  package let key: String
  package let limit: Int

  package init(key: String, limit: Int) {
    self.key = key
    self.limit = limit
  }

  package var description: String { "\(key): more than the limit of \(limit) bytes" }
}
