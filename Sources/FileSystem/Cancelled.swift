/// Work that was stopped before its end. The batch stays in the queue.
public struct Cancelled: Error, Equatable, CustomStringConvertible {
  /// Creates the error.
  public init() {}

  /// The text of the error in messages.
  public var description: String { "stopped before its end" }
}

/// A failure of the environment (a server, a network), not of a batch.
package protocol EnvironmentFailure: Error {}
