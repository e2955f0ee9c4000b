import Encoding
import FileSystem
import FrameBatches
import Sessions

/// A place of an embedder's own where segments are published. For any thread.
public protocol SegmentStore: Sendable {
  /// Publishes all segments of a batch, as a whole, so that they are there after a power cut.
  ///
  /// A batch may come again, after a failure or twice at once: then it has the same names and bytes, and publishing it has to
  /// change nothing.
  ///
  /// - Parameter segments: in order, at least one. Their files are removed after the call.
  /// - Throws: what ``BatchEncoder/publish(_:session:isCancelled:)`` throws on: ``BadBatch`` for a batch that must not be published,
  ///   anything else for the store's own trouble.
  func publish(_ segments: [FinishedSegment], of session: SessionID) throws
}

/// A segment that is encoded.
public struct FinishedSegment: Sendable {
  /// When its first frame comes on screen, in unix milliseconds.
  public let startMs: Int64
  /// When its last frame leaves the screen, in unix milliseconds.
  public let endMs: Int64
  /// The name that its manifest gives the video: `segment-<start>.mp4`.
  public let videoName: String
  /// Where the video lies until it is published.
  public let videoPath: String
  /// The name that readers expect the manifest under: `segment-<start>.json`.
  public let manifestName: String
  /// The manifest: JSON in UTF-8, format `segment-manifest/1`.
  public let manifest: [UInt8]
}

/// A store of an embedder's own, as encoders see it. It has no views, and knows of no earlier batch.
struct EmbeddedStore: ArtifactStore {
  let store: any SegmentStore
  let staging: Staging

  func prepare(_ source: BatchReader, isCancelled: () -> Bool) throws -> Preparation {
    .ready(EmbeddedPublication(store: store, batch: source.batch))
  }

  func rollBack(_ source: BatchReader, isCancelled: () -> Bool) throws -> PublishedBatch? { nil }

  var dueInMs: Int? { nil }

  func flushPending(all: Bool) -> [ViewUpdateFailure] { [] }
}

private struct EmbeddedPublication: Publication {
  let store: any SegmentStore
  let batch: Batch

  func commit(
    _ segments: [StagedSegment], digest: String, settings: EncoderSettings, isCancelled: () -> Bool
  ) throws -> PublishedBatch {
    let manifests = SegmentManifest.all(segments, of: batch, digest: digest, settings)
    if isCancelled() { throw Cancelled() }
    try store.publish(
      zip(segments, manifests).map { segment, manifest in
        FinishedSegment(
          startMs: segment.startMs, endMs: segment.endMs, videoName: manifest.segment.file, videoPath: segment.file,
          manifestName: SegmentName.manifest(segment.startMs), manifest: SegmentManifest.text(of: manifest.json))
      }, of: batch.session)
    let receipt = Receipt(
      manifests.map(\.segment), of: batch, refused: manifests.flatMap(\.refused), duplicate: false,
      warnings: batch.warnings + SegmentManifest.notes(in: manifests))
    return PublishedBatch(receipt) { [] }
  }
}
