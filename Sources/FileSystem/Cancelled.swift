/// The work was stopped before its end; the batch is owed as before.
public struct Cancelled: Error, Equatable, CustomStringConvertible {
  public init() {}

  public var description: String { "stopped before its end" }
}

/// What is wrong lies in the environment (a server, a network), not in any batch.
package protocol EnvironmentFailure: Error {}
