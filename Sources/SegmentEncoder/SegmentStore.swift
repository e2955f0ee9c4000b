import Encoding
import FileSystem
import FrameBatches
import Sessions
import Synchronization

/// An embedder's own store of segments. For any thread.
public protocol SegmentStore: Sendable {
  /// Publishes all segments of a batch as a whole, durable even after a power cut.
  ///
  /// An encoder may publish a batch again after a failure, or two encoders may publish it at once: with the same names and
  /// bytes. The store must not change anything then.
  ///
  /// - Parameters:
  ///   - segments: in order, at least one.
  ///   - session: the session that they are a part of.
  /// - Throws: ``BadBatch`` for a batch that must not be published, any other error for a failure of the store.
  ///   ``BatchEncoder/publish(_:session:isCancelled:)`` throws it on.
  func publish(_ segments: [Segment], of session: SessionID) throws
}

/// A store in memory, for tests. For any thread.
public final class MemoryStore: SegmentStore {
  private let published = Mutex<[SessionID: [Int64: Segment]]>([:])

  /// An empty store.
  public init() {}

  /// Adds segments. One of a session and a start that are there already is not replaced.
  public func publish(_ segments: [Segment], of session: SessionID) {
    published.withLock { published in
      for segment in segments where published[session]?[segment.startMs] == nil {
        published[session, default: [:]][segment.startMs] = segment
      }
    }
  }

  /// Returns the published segments of a session, in order; none of a session that it does not have.
  public func segments(of session: SessionID) -> [Segment] {
    published.withLock { $0[session]?.values.sorted { $0.startMs < $1.startMs } ?? [] }
  }
}

/// Adapts an embedder's store. It has no views and knows no earlier batch.
struct EmbeddedStore: ArtifactStore {
  let store: any SegmentStore

  func stage(_ video: [UInt8]) -> StagedVideo { .bytes(video) }

  func hasTombstones() -> Bool { false }

  func tombstone(of session: SessionID) -> Tombstone? { nil }

  func prepare(_ source: BatchReader, cancellation: Cancellation) throws -> Preparation {
    .continued(source.reading(source.batch.closed), EmbeddedPublication(store: store, batch: source.batch))
  }

  func publisher(of source: BatchReader) -> VideoPublisher { { EmbeddedPublication(store: store, batch: $0) } }

  func rollBack(_ source: BatchReader, cancellation: Cancellation) throws -> PublishedBatch? { nil }

  var dueInMs: Int? { nil }

  func flushPending(all: Bool) -> [ViewUpdateFailure] { [] }
}

private struct EmbeddedPublication: Publication {
  let store: any SegmentStore
  let batch: Batch

  func commit(_ manifests: [SegmentManifest], cancellation: Cancellation) throws -> PublishedBatch {
    try cancellation.check()
    let segments = try manifests.map { Segment($0, of: batch.session, video: try $0.staged.video.bytes()) }
    try store.publish(segments, of: batch.session)
    let receipt = Receipt(
      manifests.map(\.segment), of: batch, refused: manifests.flatMap(\.refused), duplicate: false,
      warnings: batch.warnings + SegmentManifest.notes(in: manifests))
    return PublishedBatch(receipt) { [] }
  }
}
