// The path of a batch, top to bottom: read, plan, encode, publish. It is synchronous on the caller's thread. For several batches
// in parallel, use several threads with one encoder each.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import Sessions

/// Encodes batches of captured frames and publishes them as segments. For one thread at a time; several threads have an encoder
/// each.
public final class BatchEncoder {
  /// How batches are decoded and encoded.
  public typealias Options = EncodingOptions

  private let options: Options
  private let settings: EncoderSettings
  private let memory: KeyFrameCache
  package let store: any ArtifactStore
  /// The stage of the work. Each call of `isCancelled` counts as a sign of life.
  package let stage = BatchStage()

  /// - Parameter output: shared by all encoders of a process.
  public convenience init(_ options: Options = Options(), output: OutputDirectory) {
    self.init(options, staging: output.staging, index: output.views)
  }

  /// - Parameters:
  ///   - store: shared by all encoders of a process.
  ///   - scratch: a private directory for unpublished segments; created if it is missing.
  /// - Throws: ``DiskError``, also if the directory belongs to another user.
  public convenience init(_ options: Options = Options(), store: any SegmentStore, scratch: String) throws {
    let staging = try Staging(scratch: scratch, worker: WorkerID())
    self.init(options, publishingTo: EmbeddedStore(store: store, staging: staging), memory: KeyFrameCache())
  }

  /// - Parameters:
  ///   - staging: where files are written before they are published; shared by all encoders of a process.
  ///   - index: shared in the same way.
  package convenience init(_ options: Options, staging: Staging, index: SessionViews) {
    self.init(options, staging: staging, index: index, memory: KeyFrameCache())
  }

  /// - Parameter memory: shared by all encoders with the same options.
  package convenience init(_ options: Options, staging: Staging, index: SessionViews, memory: KeyFrameCache) {
    self.init(options, publishingTo: DirectoryStore(staging: staging, index: index), memory: memory)
  }

  /// - Parameter store: shared by all encoders of a process, and `memory` likewise.
  package init(_ options: Options, publishingTo store: any ArtifactStore, memory: KeyFrameCache) {
    FFmpegLog.silence()
    self.options = options
    self.memory = memory
    settings = EncoderSettings(
      options.quality, maxHoldMs: options.maxHoldMs, background: options.background)
    self.store = store
  }

  /// Encodes and publishes one batch.
  ///
  /// - Parameters:
  ///   - path: a directory or an archive; `-` is an archive on standard input.
  ///   - session: for a batch that does not name its own.
  ///   - isCancelled: asked before each frame, and last before anything is published.
  /// - Throws: ``ViewUpdateFailure`` when the batch is published but its session's views are not up to date. After any other
  ///   error nothing is published that a retry does not find; see ``Disposition``.
  public func publish(
    _ path: String, session: String? = nil, isCancelled: @escaping () -> Bool = { false }
  ) throws -> Receipt {
    try publish(read(path, session: session, isCancelled: isCancelled), isCancelled: isCancelled)
  }

  /// A batch that was read.
  package struct ReadBatch {
    fileprivate let source: BatchReader
    fileprivate let opening: Profile.Watch?

    package var session: SessionID { source.batch.session }
  }

  /// Reads a batch and checks its limits.
  ///
  /// - Parameter files: the images that the batch consists of; then `path` is their directory, which names the batch.
  package func read(
    _ path: String, files: [String] = [], session: String? = nil, isCancelled: @escaping () -> Bool = { false }
  ) throws -> ReadBatch {
    stage.enter(.open)
    defer { stage.enter(.queue) }
    let opening = options.profile?.start(.open)
    let source = try BatchReader(
      reading: path, files: files, session: session, limits: options.limits, unpacker: options.decoders,
      isCancelled: signing(isCancelled))
    guard Timeline.segmentBound(of: source.batch, maxHoldMs: options.maxHoldMs) <= options.limits.segments else {
      throw BadBatch(
        "plan", source.batch.name, "more than the limit of \(options.limits.segments) segments",
        advice: "split the batch")
    }
    return ReadBatch(source: source, opening: opening)
  }

  /// Encodes and publishes a batch that was read.
  package func publish(_ batch: ReadBatch, isCancelled: @escaping () -> Bool) throws -> Receipt {
    stage.enter(.open)
    defer { stage.enter(.queue) }
    let isCancelled = signing(isCancelled)
    let preparation = try store.prepare(batch.source, isCancelled: isCancelled)
    batch.opening?.stop()
    let publication: any Publication
    switch preparation {
    case .alreadyPublished(let published): return try published.updateViews()
    case .ready(let ready): publication = ready
    }
    stage.enter(.encode)
    var digest = BatchDigest(of: batch.source.batch)
    let (segments, unchanged) = try encode(batch.source, digest: &digest, isCancelled: isCancelled)
    defer { for segment in segments { unlink(segment.file) } }
    stage.enter(.publish)
    let publishing = options.profile?.start(.publish)
    defer { publishing?.stop() }
    let published = try publication.commit(
      segments, digest: digest.finish(), settings: settings, isCancelled: isCancelled)
    var receipt = try published.updateViews()
    receipt.unchanged = unchanged
    return receipt
  }

  /// For a batch that killed workers: returns its receipt if it is published as a whole; else rolls its segments back.
  ///
  /// - Parameter isCancelled: asked while the batch is read.
  /// - Returns: the receipt of a batch that is published.
  package func rollBack(_ batch: ReadBatch, isCancelled: @escaping () -> Bool) throws -> Receipt? {
    stage.enter(.open)
    defer { stage.enter(.queue) }
    return try store.rollBack(batch.source, isCancelled: signing(isCancelled))?.updateViews()
  }

  /// Returns `isCancelled` that also records a sign of life at each call.
  private func signing(_ isCancelled: @escaping () -> Bool) -> () -> Bool {
    { [stage] in
      stage.sign()
      return isCancelled()
    }
  }

  private func encode(
    _ source: BatchReader, digest: inout BatchDigest, isCancelled: @escaping () -> Bool
  ) throws -> (
    segments: [StagedSegment], unchanged: Int
  ) {
    self.stage.begin(frames: source.batch.frames.count)
    var stage = SegmentStage(
      settings: settings, memory: memory, staging: store.staging, profile: options.profile, progress: self.stage,
      refused: source.batch.refused)
    do {
      let unchanged = try FrameLoop.walk(
        source, options, memory, digest: &digest, into: &stage, isCancelled: isCancelled)
      return (try stage.finish(source.batch), unchanged)
    } catch {
      stage.discard()
      throw error
    }
  }
}

/// Collects a batch's frames into segments, and stages each segment when it closes.
private struct SegmentStage: ShotConsumer, ~Copyable {
  private let settings: EncoderSettings
  private let memory: KeyFrameCache
  private let staging: Staging
  private let profile: Profile?
  private let progress: BatchStage
  private var open: SegmentWriter?
  private var done: [StagedSegment] = []
  /// Frames that were refused since the last segment closed.
  private var refused: [RefusedFrame]
  private var notes: [Int64: String] = [:]

  init(
    settings: EncoderSettings, memory: KeyFrameCache, staging: Staging, profile: Profile?, progress: BatchStage,
    refused: [RefusedFrame]
  ) {
    self.settings = settings
    self.memory = memory
    self.staging = staging
    self.profile = profile
    self.progress = progress
    self.refused = refused
  }

  mutating func refuse(_ frame: RefusedFrame) {
    progress.advance()
    refused.append(frame)
  }

  mutating func note(_ text: String, on capture: Capture) { notes[capture.timeMs] = text }

  mutating func show(_ still: SourceFrame, in shots: [FrameHold], _ isCancelled: () -> Bool) throws {
    progress.advance()
    for shot in shots {
      if isCancelled() { throw Cancelled() }
      if shot.opensSegment {
        open = SegmentWriter(first: still, settings: settings, profile: profile)
      }
      try open?.show(still, in: shot)
      if shot.closingGapMs != nil {
        try close()
        if let key = still.key, let identity = still.identity { memory.remember(key, as: identity) }
      }
    }
  }

  /// All segments, in order.
  mutating func finish(_ batch: Batch) throws -> [StagedSegment] {
    guard !done.isEmpty else { throw BadBatch(undecodable: batch, refused) }
    return done
  }

  mutating func discard() {
    for segment in done { unlink(segment.file) }
    done = []
  }

  private mutating func close() throws {
    guard let writer = open.take() else { return }
    let segment = try writer.finish()
    let writing = profile?.start(.write)
    done.append(try StagedSegment(segment, in: staging, refused: refused, notes: notes))
    writing?.stop()
    refused = []
  }
}
