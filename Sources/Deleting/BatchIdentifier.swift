import FileSystem
import FrameBatches

/// Finds the sessions of a batch, with limits and a deadline.
package struct BatchIdentifier {
  /// Milliseconds for one batch.
  private static let deadlineMs = 30_000

  private let limits: Limits
  private let unpacker: (any ArchiveUnpacker)?
  let cancellation: Cancellation

  /// - Parameters:
  ///   - unpacker: unpacks archives in another process; nil to unpack trusted archives in this process.
  ///   - cancellation: whether to stop.
  package init(
    limits: Limits = Limits(), unpacker: (any ArchiveUnpacker)?, cancellation: Cancellation = .never
  ) {
    self.limits = limits
    self.unpacker = unpacker
    self.cancellation = cancellation
  }

  /// The size limit of a stored batch.
  var maximumBytes: Int { limits.unpackedBytes }

  /// Returns the sessions of a batch.
  ///
  /// - Parameter name: the name that the producer gave the batch.
  /// - Throws: ``DiskError`` when reading fails; ``Cancelled`` when it has to stop.
  func sessions(of path: String, named name: String) throws -> NamedSessions {
    var isReadable = false
    do {
      let found = try NamedSessions.of(
        path, limits: limits, unpacker: unpacker, cancellation: cancellation.or(afterMs: Self.deadlineMs))
      if found.isCertain { return found }
      isReadable = found.isReadableWithoutSession
    } catch is Cancelled where !cancellation.isRequested {
      // The name may tell.
    }
    return NamedSessions(byNameOf: name, isReadable: isReadable)
  }
}
