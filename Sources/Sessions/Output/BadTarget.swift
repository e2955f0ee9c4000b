import FileSystem

/// A path that an output cannot be written to.
package struct BadTarget: ClassifiedError, Equatable {
  package var kind: Failure.Kind { .usage }
  package let path: String
  package let cause: String
  package let advice: String

  package init(path: String, cause: String, advice: String) {
    self.path = path
    self.cause = cause
    self.advice = advice
  }

  package var description: String { "write \(path): \(cause); \(advice)" }
}
