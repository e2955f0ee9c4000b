/// Work that was stopped before its end. The batch stays in the queue.
package struct Cancelled: Error, Equatable, CustomStringConvertible {
  package init() {}

  package var description: String { "stopped before its end" }
}

/// A failure of the environment (a server, a network), not of a batch.
package protocol EnvironmentFailure: Error {}
