/// The work was stopped before its end; the batch is owed as before.
public struct Cancelled: Error, Equatable, CustomStringConvertible {
  public init() {}

  public var description: String { "stopped before its end" }
}

/// The environment (a server, a network) failed, not a batch.
package protocol EnvironmentFailure: Error {}
