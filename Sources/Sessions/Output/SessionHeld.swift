import FileSystem

/// Another process holds the session's lock.
package struct SessionHeld: ClassifiedError {
  package var kind: Failure.Kind { .environment }
  package var description: String { "another process holds its lock" }
}
