/// Another process holds the session's lock.
package struct SessionHeld: Error, CustomStringConvertible {
  package var description: String { "another process holds its lock" }
}
