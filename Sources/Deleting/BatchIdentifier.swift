import FileSystem
import FrameBatches

/// Finds the sessions of a batch, with limits and a deadline.
package struct BatchIdentifier {
  /// Milliseconds for one batch.
  private static let deadlineMs = 30_000

  private let limits: Limits
  private let unpacker: (any ArchiveUnpacker)?
  let isCancelled: () -> Bool

  /// - Parameters:
  ///   - unpacker: unpacks archives in another process; nil to unpack trusted archives in this process.
  ///   - isCancelled: whether to stop.
  package init(
    limits: Limits = Limits(), unpacker: (any ArchiveUnpacker)?, isCancelled: @escaping () -> Bool = { false }
  ) {
    self.limits = limits
    self.unpacker = unpacker
    self.isCancelled = isCancelled
  }

  /// The size limit of a stored batch.
  var maximumBytes: Int { limits.unpackedBytes }

  /// Returns the sessions of a batch.
  ///
  /// - Parameter name: the name that the producer gave the batch.
  /// - Throws: ``DiskError`` when reading fails; ``Cancelled`` when it has to stop.
  func sessions(of path: String, named name: String) throws -> NamedSessions {
    let deadline = MonotonicClock.milliseconds() + Self.deadlineMs
    var isReadable = false
    do {
      let found = try NamedSessions.of(path, limits: limits, unpacker: unpacker) {
        isCancelled() || MonotonicClock.milliseconds() >= deadline
      }
      if found.isCertain { return found }
      isReadable = found.isReadableWithoutSession
    } catch is Cancelled where !isCancelled() {
      // The name may tell.
    }
    return NamedSessions(byNameOf: name, isReadable: isReadable)
  }
}
