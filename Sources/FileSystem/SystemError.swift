import Glibc

/// A failure of a system call that has no path.
package struct SystemError: Error, CustomStringConvertible {
  let operation: String
  let code: Int32

  package init(operation: String, code: Int32) { (self.operation, self.code) = (operation, code) }

  package var description: String { "\(operation): \(String(cString: strerror(code)))" }
}
