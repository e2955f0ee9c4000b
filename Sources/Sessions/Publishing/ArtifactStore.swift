// Where segments are published. An output directory is one such store; what encodes works for any.

import Encoding
import FileSystem
import FrameBatches

/// A store of sessions, for several threads at once, and for several workers on whichever hosts.
///
/// It publishes a batch as a whole and once, durable even after a power cut. It throws ``BadBatch`` when
/// something else has been published for the same time; anything else it throws is the store's own trouble.
package protocol ArtifactStore: Sendable {
  /// Where files are written before they are published.
  var staging: Staging { get }
  /// Looks whether a batch is published.
  ///
  /// - Throws: ``Cancelled``.
  func prepare(_ source: BatchReader, isCancelled: () -> Bool) throws -> Preparation
  /// Takes back what a worker published of a batch before it died, when that is not all of it.
  ///
  /// - Returns: the batch when it is published as a whole; nil when nothing of it is left.
  func rollBack(_ source: BatchReader, isCancelled: () -> Bool) throws -> PublishedBatch?
  /// The time until ``flushPending(all:)`` is due, in milliseconds; nil where all views tell of all segments.
  var dueInMs: Int? { get }
  /// Brings the views up to date that are due, and those that a process left that is gone.
  ///
  /// - Parameter all: whether those, too, that are not due yet. Then live playlists hold nothing back.
  /// - Returns: those that could not be; they are tried again later.
  func flushPending(all: Bool) -> [ViewUpdateFailure]
}

/// The state of a batch in a store before it is encoded.
package enum Preparation {
  /// All of it is published.
  case alreadyPublished(PublishedBatch)
  case ready(any Publication)
}

/// A batch that can be published, with what the store saw when it was asked.
package protocol Publication {
  /// Publishes all segments of the batch. When this returns, their manifests are durable.
  ///
  /// - Parameters:
  ///   - digest: of the batch.
  ///   - settings: what the segments were encoded with.
  ///   - isCancelled: asked while the session is not ours, and last before anything is published.
  /// - Throws: ``BadBatch``; ``Cancelled``. Nothing is published then that a retry does not find.
  func commit(
    _ segments: [StagedSegment], digest: String, settings: EncoderSettings, isCancelled: () -> Bool
  ) throws -> PublishedBatch
}

/// A batch whose manifests are durable. As long as this exists its session is locked, in stores that have locks.
package struct PublishedBatch {
  private let receipt: Receipt
  private let update: () throws -> [String]

  /// - Parameter update: brings the session's views up to date, or sees to it that they will be; returns warnings.
  package init(_ receipt: Receipt, update: @escaping () throws -> [String]) {
    self.receipt = receipt
    self.update = update
  }

  /// Brings the session's views up to date, or sees to it that they will be.
  ///
  /// - Throws: ``ViewUpdateFailure``; ``Cancelled``.
  package consuming func updateViews() throws -> Receipt {
    do {
      var receipt = receipt
      receipt.warnings += try update()
      return receipt
    } catch let error as Cancelled {
      throw error
    } catch {
      throw ViewUpdateFailure(session: receipt.session, error: error, isOurs: true)
    }
  }
}

/// The views of a session could not be brought up to date. Its segments are published.
public struct ViewUpdateFailure: Error, CustomStringConvertible {
  public let session: SessionID
  public let error: any Error
  /// Whether this process let them lag; else a process did that is gone, and who adds to the session next will see to it.
  public let isOurs: Bool

  public var description: String { "\(error)" }
}
