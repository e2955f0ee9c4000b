// The interface of a store, where segments are published. An output directory is a store, and so is an object store.

import Encoding
import FileSystem
import FrameBatches

/// A store of sessions, for several threads and for workers on several hosts.
///
/// It publishes a batch as a whole and once, durable even after a power cut. It throws ``BadBatch`` if other content is published
/// for the same time, ``SessionDeleted`` if the session was deleted, and ``BatchTooOld`` if the session keeps nothing of its time. Every other error is a failure of the store.
package protocol ArtifactStore: Sendable {
  /// Keeps a video until its batch is published.
  func stage(_ video: [UInt8]) throws -> StagedVideo
  /// Whether any session may have been deleted.
  func hasTombstones() throws -> Bool
  /// Returns the tombstone of a session; nil if it was not deleted.
  func tombstone(of session: SessionID) throws -> Tombstone?
  /// Looks whether a batch is published.
  ///
  /// - Throws: ``SessionDeleted``; ``Cancelled``.
  func prepare(_ source: BatchReader, cancellation: Cancellation) throws -> Preparation
  /// Returns the function that publishes the videos of a batch of finished segments.
  ///
  /// - Throws: ``BadBatch``, ``SessionDeleted``.
  func publisher(of source: BatchReader) throws -> VideoPublisher
  /// Rolls back a batch that a dead worker published in part.
  ///
  /// - Returns: the batch if it is published as a whole; nil if nothing of it is left.
  /// - Throws: ``SessionDeleted``; ``Cancelled``.
  func rollBack(_ source: BatchReader, cancellation: Cancellation) throws -> PublishedBatch?
  /// Adds labels to a session that is published. Those that it has are left out, so a batch may come again.
  ///
  /// - Throws: ``SessionUnpublished``; ``SessionDeleted``; ``Cancelled``.
  func add(_ addition: LabelAddition, cancellation: Cancellation) throws -> Receipt
  /// The time until ``flushPending(all:)`` is due, in milliseconds; nil if all views are up to date.
  var dueInMs: Int? { get }
  /// Updates the views that are due, and those that a dead process left behind.
  ///
  /// - Parameter all: whether to update views that are not due, too. Then live playlists hold nothing back.
  /// - Returns: the updates that failed; they are retried later.
  func flushPending(all: Bool) -> [ViewUpdateFailure]
}

extension ArtifactStore {
  /// For a store without published sessions.
  package func add(_ addition: LabelAddition, cancellation: Cancellation) throws -> Receipt {
    throw BadBatch(
      "publish", addition.name, "labels without pictures", advice: "give labels with the pictures of their time")
  }
}

/// Begins the publication of one video's batch. Its content is compared with what is published when it is committed.
package typealias VideoPublisher = (Batch) throws -> any Publication

/// A store of workers, which has a directory of unpublished files.
package protocol WorkerStore: ArtifactStore, EndingStore {
  var staging: Staging { get }
  /// Reads the words in the pictures of a session, of the segments that have none yet.
  ///
  /// - Parameters:
  ///   - fromMs: the start of the first new segment; a store may leave out earlier ones.
  ///   - progress: called with the number of segments done and of all; an error that it throws ends the work.
  /// - Throws: ``BadSession``, ``Failure``, ``SessionHeld``, ``DiskError``, ``Cancelled``; an error of the store. All that was written
  ///   before stays.
  func readText(
    of session: SessionID, fromMs: Int64, _ engine: TextEngine, decoders: DecoderForkServer?,
    cancellation: Cancellation,
    progress: (Int, Int) throws -> Void
  ) throws -> SessionTextReport
  /// Makes files of a session that has ended, and keeps them in `exports/` of the session. Those that are there stay.
  ///
  /// - Parameters:
  ///   - names: of the files.
  ///   - make: makes a file. It gets the path of the session, or of a copy, and a new path for the file. It returns false if there is
  ///     none to keep.
  /// - Returns: those that are kept; nil if the session is gone.
  /// - Throws: errors of `make`; ``SessionDeleted``, ``DiskError``, ``Cancelled``; an error of the store. Files that were made before stay.
  func export(
    _ names: [String], of session: SessionID, cancellation: Cancellation,
    make: (_ session: String, _ name: String, _ target: String) throws -> Bool
  ) throws -> [ExportedFile]?
  /// Returns the arguments by which the command `text` takes a session, for messages.
  func textArguments(of session: String) -> String
}

extension WorkerStore {
  package func stage(_ video: [UInt8]) throws -> StagedVideo { .file(try staging.write(video)) }
}

/// The state of a batch in a store before it is encoded.
package enum Preparation: ~Copyable {
  /// All of it is published.
  case alreadyPublished(PublishedBatch)
  case ready(any Publication)
  /// Its beginning is published, because its ``Batch/folder`` has grown. This is the rest.
  case continued(BatchReader, any Publication)
}

/// A batch that can be published, with what the store saw when it was asked.
package protocol Publication {
  /// Publishes all segments of the batch. When this returns, their manifests are durable.
  ///
  /// - Parameters:
  ///   - manifests: of all segments, in order, at least one.
  ///   - cancellation: asked while the store waits for the session's lock, and last before the publication.
  /// - Throws: ``BadBatch``; ``SessionDeleted``; ``Cancelled``. Nothing is published then that a retry does not find.
  func commit(_ manifests: [SegmentManifest], cancellation: Cancellation) throws -> PublishedBatch
}

/// A batch whose manifests are durable. As long as this exists its session is locked, in stores that have locks.
package struct PublishedBatch: ~Copyable {
  private let receipt: Receipt
  private var lock: SessionLock?
  private let update: () throws -> [String]

  /// - Parameter update: updates the session's views, or defers that; returns warnings.
  package init(_ receipt: Receipt, update: @escaping () throws -> [String]) {
    self.init(receipt, locked: nil, update: update)
  }

  /// - Parameter lock: the session's, released after the update.
  init(_ receipt: Receipt, locked lock: consuming SessionLock?, update: @escaping () throws -> [String]) {
    self.receipt = receipt
    self.lock = lock
    self.update = update
  }

  /// Updates the session's views, or defers that.
  ///
  /// - Throws: ``ViewUpdateFailure``; ``SessionDeleted`` if it was deleted after the publication; ``Cancelled``.
  package consuming func updateViews() throws -> Receipt {
    do {
      var receipt = receipt
      receipt.warnings += try update()
      lock.take()?.release()
      return receipt
    } catch let error where error is Cancelled || error is SessionDeleted {
      throw error
    } catch {
      throw ViewUpdateFailure(receipt.session, .ownViews, error)
    }
  }
}
