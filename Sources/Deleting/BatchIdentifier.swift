import FileSystem
import FrameBatches

/// Finds the sessions of a batch, with limits and a deadline.
package struct BatchIdentifier {
  /// Milliseconds for one batch.
  private static let deadlineMs = 30_000

  private let options: InputOptions
  private let wanted: [SessionID]
  private let limits: Limits
  private let unpacker: (any ArchiveUnpacker)?
  let cancellation: Cancellation

  /// - Parameters:
  ///   - options: how the workers tell sessions by the names of batches.
  ///   - wanted: sessions whose IDs may be in names that the options do not read.
  ///   - unpacker: unpacks archives in another process; nil to unpack trusted archives in this process.
  ///   - cancellation: whether to stop.
  package init(
    options: InputOptions = InputOptions(), wanted: [SessionID] = [], limits: Limits = Limits(),
    unpacker: (any ArchiveUnpacker)?, cancellation: Cancellation = .never
  ) {
    (self.options, self.wanted) = (options, wanted)
    self.limits = limits
    self.unpacker = unpacker
    self.cancellation = cancellation
  }

  /// The size limit of a stored batch.
  var maximumBytes: Int { limits.unpackedBytes }

  /// Returns the sessions of a batch.
  ///
  /// - Parameter name: the name that the producer gave the batch, perhaps with folders before it.
  /// - Throws: ``DiskError`` when reading fails; ``Cancelled`` when it has to stop.
  func sessions(of path: String, named name: String) throws -> NamedSessions {
    var isReadable = false
    do {
      let found = try NamedSessions.of(
        path, named: name, options: options, limits: limits, unpacker: unpacker,
        cancellation: cancellation.or(afterMs: Self.deadlineMs))
      if found.isByContent { return found }
      isReadable = found.isReadableWithoutSession
    } catch is Cancelled where !cancellation.isRequested {
      // The name may tell.
    }
    return NamedSessions(byNameOf: name, options, isReadable: isReadable)
  }

  /// Returns the sessions that the name of a batch tells.
  func sessions(byNameOf name: String) -> NamedSessions { NamedSessions(byNameOf: name, options) }

  /// Returns what to report of a batch that stays because its sessions are others: nothing, unless only its name says them, and has
  /// the ID of a wanted session in it, as `s01-3` has `s01`.
  func remains(_ path: String, _ found: NamedSessions) -> BatchRemovals {
    guard found.isByName, let session = found.sessions.first,
      wanted.contains(where: { Self.hasWord($0.description, in: session.description) })
    else { return BatchRemovals() }
    return BatchRemovals(alike: path, session)
  }

  /// Whether a text is a part of a longer one, between characters that are neither letters nor digits.
  private static func hasWord(_ word: String, in text: String) -> Bool {
    text != word
      && text.ranges(of: word).contains { range in
        !(text[..<range.lowerBound].last?.isAlphanumeric ?? false)
          && !(text[range.upperBound...].first?.isAlphanumeric ?? false)
      }
  }
}

extension Character {
  fileprivate var isAlphanumeric: Bool { isLetter || isNumber }
}
