import Encoding
import FileSystem
import FrameBatches
import Sessions

/// An embedder's own store of segments. For any thread.
public protocol SegmentStore: Sendable {
  /// Publishes all segments of a batch as a whole, durable even after a power cut.
  ///
  /// An encoder may publish a batch again after a failure, or two encoders may publish it at once: with the same names and
  /// bytes. The store must not change anything then.
  ///
  /// - Parameter segments: in order, at least one. Their files are removed after the call.
  /// - Throws: ``BadBatch`` for a batch that must not be published, any other error for a failure of the store.
  ///   ``BatchEncoder/publish(_:session:isCancelled:)`` throws it on.
  func publish(_ segments: [FinishedSegment], of session: SessionID) throws
}

/// A segment that is encoded.
public struct FinishedSegment: Sendable {
  /// The time when its first frame comes on screen, in unix milliseconds.
  public let startMs: Int64
  /// The time when its last frame leaves the screen, in unix milliseconds.
  public let endMs: Int64
  /// The name that its manifest gives the video: `segment-<start>.mp4`.
  public let videoName: String
  /// The path of the video until it is published.
  public let videoPath: String
  /// The name that readers expect the manifest under: `segment-<start>.json`.
  public let manifestName: String
  /// The manifest: JSON in UTF-8, format `segment-manifest/1`.
  public let manifest: [UInt8]
}

/// Adapts an embedder's store. It has no views and knows no earlier batch.
struct EmbeddedStore: ArtifactStore {
  let store: any SegmentStore
  let staging: Staging

  func hasTombstones() -> Bool { false }

  func tombstone(of session: SessionID) -> Tombstone? { nil }

  func prepare(_ source: BatchReader, cancellation: Cancellation) throws -> Preparation {
    .ready(EmbeddedPublication(store: store, batch: source.batch))
  }

  func rollBack(_ source: BatchReader, cancellation: Cancellation) throws -> PublishedBatch? { nil }

  var dueInMs: Int? { nil }

  func flushPending(all: Bool) -> [ViewUpdateFailure] { [] }
}

private struct EmbeddedPublication: Publication {
  let store: any SegmentStore
  let batch: Batch

  func commit(_ manifests: [SegmentManifest], cancellation: Cancellation) throws -> PublishedBatch {
    try cancellation.check()
    try store.publish(
      manifests.map { manifest in
        FinishedSegment(
          startMs: manifest.segment.startMs, endMs: manifest.segment.endMs, videoName: manifest.segment.file,
          videoPath: manifest.staged.file, manifestName: SegmentName.manifest(manifest.segment.startMs),
          manifest: SegmentManifest.text(of: manifest.json))
      }, of: batch.session)
    let receipt = Receipt(
      manifests.map(\.segment), of: batch, refused: manifests.flatMap(\.refused), duplicate: false,
      warnings: batch.warnings + SegmentManifest.notes(in: manifests))
    return PublishedBatch(receipt) { [] }
  }
}
