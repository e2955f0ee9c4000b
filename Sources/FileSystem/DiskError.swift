import Glibc

/// A file operation that failed.
///
/// It is a fault of the environment, never of the batch: see `Disposition`.
public struct DiskError: Error, Equatable, CustomStringConvertible {
  /// The call, as in its man page: `open`, `write`, `fsync` …
  public let operation: String
  /// The path of the file or directory.
  public let path: String
  /// `errno` right after the call.
  public let code: Int32

  package init(_ operation: String, _ path: String, code: Int32 = errno) {
    self.operation = operation
    self.path = path
    self.code = code
  }

  /// The call, the path and the system's text for the code.
  public var description: String { "\(operation) \(path): \(String(cString: strerror(code)).lowercasedFirst)" }

  /// Whether the file system has no such locks: NFS refuses one on a file that is open for reading only.
  package var saysNoLocks: Bool { [EBADF, ENOLCK, EOPNOTSUPP].contains(code) }
}

/// Makes a system call, again after each interruption.
///
/// - Returns: the call's result, zero or more.
/// - Throws: an error with `errno` when the result is negative.
@discardableResult
package func check<Count: SignedInteger>(
  _ operation: String, _ path: String, _ call: () -> Count
) throws(DiskError) -> Count {
  while true {
    let result = call()
    let code = errno
    if result >= 0 { return result }
    if code != EINTR { throw DiskError(operation, path, code: code) }
  }
}

extension String {
  package var lowercasedFirst: String { prefix(1).lowercased() + dropFirst() }
}

extension DiskError: ClassifiedError {
  package var kind: Failure.Kind { .environment }
}
