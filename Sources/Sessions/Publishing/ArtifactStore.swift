// Where segments are published. An output directory is one such store; what encodes works for any.

import Encoding
import FrameBatches

/// A store of sessions, for several threads at once, and for several workers on whichever hosts.
///
/// What it publishes, it publishes as a whole and once, and so that it is there after a power cut. It throws ``BadBatch`` when
/// something else has been published for the same time; anything else it throws is the store's own trouble.
package protocol ArtifactStore: Sendable {
  /// Where files are written before they are published.
  var staging: Staging { get }
  /// The receipt of a batch that is published already, whole; nil when there is work to do.
  func receipt(for source: OpenBatch, isCancelled: () -> Bool) throws -> Receipt?
  /// Takes back what a worker published of a batch before it died, when that is not all of it.
  ///
  /// - Returns: the receipt when it is.
  func settle(_ source: OpenBatch, isCancelled: () -> Bool) throws -> Receipt?
  /// Publishes all segments of a batch and brings the session's views up to date, or sees to it that they will be.
  ///
  /// - Parameter isCancelled: asked while the session is not ours, and last before anything is published.
  /// - Throws: ``BadBatch``; ``Cancelled``.
  func publish(
    _ segments: [StagedSegment], of batch: Batch, digest: String, settings: EncoderSettings, isCancelled: () -> Bool
  ) throws -> Receipt
  /// The time until ``catchUp(all:)`` is due, in milliseconds; nil where all views tell of all segments.
  var dueInMs: Int? { get }
  /// Brings the views up to date that are due, and those that a process left that is gone.
  ///
  /// - Parameter all: whether those, too, that are not due yet. Then live playlists hold nothing back.
  /// - Returns: those that could not be; they are tried again later.
  func catchUp(all: Bool) -> [SessionIndex.Laggard]
}
