import FileSystem

/// A file in the output that this program did not write. The worker does not replace it.
package struct DamagedOutput: ClassifiedError, Equatable {
  package var kind: Failure.Kind { .input }
  package let path: String
  package let cause: String

  package var description: String { "read \(path): \(cause); move it away and run again" }
}
