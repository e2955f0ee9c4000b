import Glibc

/// A file operation that the system refused: which one, on what, and why.
///
/// The environment is to blame, never the batch: see `Disposition`.
public struct DiskError: Error, Equatable, CustomStringConvertible {
  /// The call, as in its man page: `open`, `write`, `fsync` …
  public let operation: String
  public let path: String
  /// `errno` right after the call.
  public let code: Int32

  package init(_ operation: String, _ path: String, code: Int32 = errno) {
    self.operation = operation
    self.path = path
    self.code = code
  }

  public var description: String {
    "\(operation) \(path): \(String(cString: strerror(code)).lowercasedFirst)"
  }

  /// Whether the file system knows no such locks: NFS takes none on what is open for reading only.
  package var saysNoLocks: Bool { [EBADF, ENOLCK, EOPNOTSUPP].contains(code) }
}

/// Calls until it is not interrupted; throws what `errno` says when the result is negative.
@discardableResult
package func check(_ operation: String, _ path: String, _ call: () -> Int32) throws(DiskError) -> Int32 {
  while true {
    let result = call()
    if result >= 0 { return result }
    if errno != EINTR { throw DiskError(operation, path) }
  }
}

extension String {
  package var lowercasedFirst: String { prefix(1).lowercased() + dropFirst() }
}
