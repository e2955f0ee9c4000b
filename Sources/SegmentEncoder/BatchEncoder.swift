// The path of a batch, top to bottom: read, prepare, encode, commit, update views. It is synchronous on the caller's thread.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import Sessions

/// Encodes batches of captured frames and publishes them as segments, synchronously. For any thread: threads that share an encoder
/// work on their batches in parallel.
public final class BatchEncoder: Sendable {
  /// How batches are decoded and encoded.
  public typealias Options = EncodingOptions

  private let options: Options
  private let settings: EncoderSettings
  private let keyFrames: KeyFrameCache
  /// The frame that the last batch ended with, for the next one.
  private let lastFrame = KeptFrame()
  package let store: any ArtifactStore
  /// The stage of the work. Each question of the work's cancellation records activity.
  package let stage = BatchStage()

  /// Creates an encoder that publishes to a directory.
  ///
  /// - Parameters:
  ///   - options: how batches are decoded and encoded.
  ///   - output: shared by all encoders of a process.
  public convenience init(_ options: Options = Options(), output: OutputDirectory) {
    self.init(options, staging: output.staging, index: output.views)
  }

  /// Creates an encoder that publishes to a store.
  ///
  /// - Parameters:
  ///   - options: how batches are decoded and encoded.
  ///   - store: gets all segments of a batch at once. Until then they are in memory.
  public convenience init(_ options: Options = Options(), store: any SegmentStore) {
    self.init(options, publishingTo: EmbeddedStore(store: store), keyFrames: KeyFrameCache())
  }

  /// - Parameters:
  ///   - staging: the directory of unpublished files; shared by all encoders of a process, like `index`.
  ///   - keyFrames: shared by all encoders with the same options.
  ///   - appendGuard: refuses batches far from their session; nil to take them.
  package convenience init(
    _ options: Options, staging: Staging, index: SessionViews, keyFrames: KeyFrameCache = KeyFrameCache(),
    appendGuard: AppendGuard? = nil
  ) {
    let store = DirectoryStore(staging: staging, index: index, appendGuard: appendGuard)
    self.init(options, publishingTo: store, keyFrames: keyFrames)
  }

  /// - Parameters:
  ///   - store: shared by all encoders of a process.
  ///   - keyFrames: shared by all encoders with the same options.
  package init(_ options: Options, publishingTo store: any ArtifactStore, keyFrames: KeyFrameCache) {
    FFmpegLog.silence()
    self.options = options
    self.keyFrames = keyFrames
    settings = EncoderSettings(options)
    self.store = store
  }

  /// Frees the last frame of an encoder without work.
  package func forgetIdleFrame() { lastFrame.forgetIfIdle() }

  /// Encodes and publishes one batch.
  ///
  /// - Parameters:
  ///   - path: a directory or a file; `-` is a file on standard input.
  ///   - session: for a batch that does not name its own.
  ///   - isCancelled: asked before each frame, and last before anything is published.
  /// - Returns: a receipt for each session of the batch, also for one that is refused: ``Receipt/refusal``.
  /// - Throws: ``ViewUpdateFailure`` when a session is published but its views are not up to date. After any other error nothing
  ///   is published that a retry does not find; see ``Disposition``.
  public func publish(
    _ path: String, session: String? = nil, isCancelled: @escaping () -> Bool = { false }
  ) throws -> [Receipt] {
    let cancellation = Cancellation(isCancelled)
    return try publish(read(path, session: session, cancellation: cancellation), cancellation: cancellation)
  }

  /// A batch that was read.
  package struct ReadBatch: Sendable {
    fileprivate var batch: BatchSessions
    fileprivate let opening: Profile.Watch?

    /// Returns the batches that the limits allow: several if a folder of loose pictures is beyond them, else this one.
    ///
    /// - Throws: ``BadBatch``.
    package func parts(_ limits: PartLimits) throws -> [ReadBatch] {
      let parts = try batch.parts(limits)
      return parts.count > 1 ? parts.map { ReadBatch(batch: $0, opening: nil) } : [self]
    }

    /// The place of an input in a row.
    package enum Place {
      case shown(ReadBatch)
      /// It has the same pictures as an input before.
      case same(asInput: String)
    }

    /// Places it behind the inputs before.
    ///
    /// - Throws: ``BadBatch``.
    package func place(in row: inout InputRow, named path: String) throws -> Place {
      switch try row.place(batch, named: path) {
      case .shown(let placed): .shown(ReadBatch(batch: placed, opening: opening))
      case .same(let other): .same(asInput: other)
      }
    }

    /// The facts of each session.
    package var batches: [Batch] { batch.readers.map(\.batch) }

    /// The number of frames.
    package var frames: Int { batch.readers.reduce(0) { $0 + $1.batch.frames.count } }

    /// Whether it ends a session.
    package var isFinal: Bool { batch.readers.contains { $0.batch.isFinal } }

    package var sessions: [SessionID] { batch.readers.map(\.batch.session) }
    /// The step of the producer's trace.
    package var traceParent: TraceParent? { batch.readers.lazy.compactMap(\.batch.traceParent).first }
    /// Continues a trace in the sessions that state none.
    package mutating func continueTrace(of step: TraceParent) { batch.continueTrace(of: step) }
    /// The sessions, also those that cannot be published.
    package var allSessions: [SessionID] { sessions + batch.refused.compactMap { SessionID($0.session) } }
  }

  /// Reads a batch and checks its limits.
  ///
  /// - Parameters:
  ///   - name: the name that the producer gave the batch; nil if the path tells it.
  ///   - files: the images that the batch consists of; then `path` is their directory, which names the batch.
  package func read(
    _ path: String, named name: String? = nil, files: [String] = [], session: String? = nil,
    cancellation: Cancellation = .never
  ) throws -> ReadBatch {
    stage.enter(.open)
    defer { stage.enter(.queue) }
    let opening = options.profile?.start(.open)
    var input = options.input
    input.session = session ?? input.session
    let batch = try BatchSessions(
      reading: path, named: name, files: files, options: input, limits: options.limits, unpacker: options.decoders,
      cancellation: recordingActivity(cancellation))
    return ReadBatch(batch: batch, opening: opening)
  }

  /// Returns the sessions that a batch names, even one that cannot be read.
  ///
  /// - Parameter name: the name that the producer gave the batch.
  package func sessions(
    namedIn path: String, named name: String, cancellation: Cancellation
  ) throws -> [SessionID] {
    stage.enter(.open)
    defer { stage.enter(.queue) }
    return try NamedSessions.of(
      path, named: name, options: options.input, limits: options.limits, unpacker: options.decoders,
      cancellation: recordingActivity(cancellation)
    ).sessions
  }

  /// Encodes and publishes a batch that was read, session by session.
  ///
  /// - Returns: a receipt for each session; the first one lists the sessions that were refused.
  /// - Throws: ``BadBatch`` if no session can be published.
  package func publish(_ batch: ReadBatch, cancellation: Cancellation) throws -> [Receipt] {
    defer { stage.enter(.queue) }
    let cancellation = recordingActivity(cancellation)
    stage.begin(frames: batch.frames)
    return try forEachSession(of: batch) { try encode($0, batch.opening, cancellation: cancellation) }
  }

  /// For a batch that killed workers: finds the sessions that are published as a whole, and rolls the others back.
  ///
  /// - Returns: the receipts of the sessions that are published; none if none is.
  package func rollBack(_ batch: ReadBatch, cancellation: Cancellation) throws -> [Receipt] {
    defer { stage.enter(.queue) }
    stage.enter(.open)
    let cancellation = recordingActivity(cancellation)
    return try forEachSession(of: batch) { try store.rollBack($0, cancellation: cancellation)?.updateViews() }
  }

  /// Calls `body` for each session. One that is refused does not stop the others.
  private func forEachSession(of batch: ReadBatch, _ body: (BatchReader) throws -> Receipt?) throws -> [Receipt] {
    var receipts: [Receipt] = []
    var refused = batch.batch.refused
    for reader in batch.batch.readers {
      do {
        if let receipt = try body(reader) { receipts.append(receipt) }
      } catch let deleted as SessionDeleted {
        receipts.append(Receipt(refusing: batch.batch.name, for: deleted))
      } catch let old as BatchTooOld {
        receipts.append(Receipt(refusing: batch.batch.name, of: old.session, because: "\(old)"))
      } catch {
        guard case .quarantine(let bad) = Disposition(of: error, batch: batch.batch.name) else { throw error }
        refused.append(RefusedSession(session: reader.batch.session.description, error: bad))
      }
    }
    guard !receipts.isEmpty else {
      if let first = refused.first { throw first.error }
      return []
    }
    receipts[0].refused += refused.map { RefusedFrame(source: "session \($0.session)", reason: "\($0.error)") }
    return receipts
  }

  /// Takes one session of a batch through its steps: prepare, encode, commit, update views.
  private func encode(
    _ read: BatchReader, _ opening: Profile.Watch?, cancellation: Cancellation
  ) throws -> Receipt {
    stage.enter(.open)
    let batch = read.batch
    let bound = Int(Timeline.segmentBound(of: batch, options))
    // The last hold of a folder's part is not counted when the folder is split.
    let lastHold = batch.folder == nil ? 0 : Int(batch.lastHoldMs / options.longestSegmentMs)
    guard bound - lastHold <= options.limits.segments else {
      throw BadBatch(
        "plan", batch.name, "more than the limit of \(options.limits.segments) segments",
        advice: Limits.advice("segments", bound, most: 1_000_000))
    }
    let preparation = try store.prepare(read, cancellation: cancellation)
    opening?.stop()
    let (source, publication): (BatchReader, any Publication)
    switch consume preparation {
    case .alreadyPublished(let published): return try published.updateViews()
    case .ready(let ready): (source, publication) = (read, ready)
    case .continued(let rest, let ready): (source, publication) = (rest, ready)
    }
    do {
      return try encode(source, to: publication, cancellation: cancellation)
    } catch let conflict as BadBatch where batch.folder != nil {
      // Another worker may have published more of the folder meanwhile.
      switch try store.prepare(read, cancellation: cancellation) {
      case .alreadyPublished(let published): return try published.updateViews()
      case .ready: throw conflict
      case .continued(let rest, let ready):
        guard rest.batch.frames.count < source.batch.frames.count else { throw conflict }
        return try encode(rest, to: ready, cancellation: cancellation)
      }
    }
  }

  /// Takes a prepared session through the further steps.
  private func encode(
    _ source: BatchReader, to publication: any Publication, cancellation: Cancellation
  ) throws -> Receipt {
    stage.enter(.encode)
    var digest = BatchDigest(of: source.batch)
    let (segments, unchanged, warnings) = try TracedStep.encode.run(of: source.batch.session) {
      let decoding = TracedDecoding(options.profile)
      defer { decoding.end() }
      return try stageSegments(of: source, digest: &digest, decoding.profile, cancellation: cancellation)
    }
    defer { for segment in segments { segment.video.discard() } }
    stage.enter(.publish)
    let publishing = options.profile?.start(.publish)
    defer { publishing?.stop() }
    let manifests = SegmentManifest.all(segments, of: source.batch, digest: digest.finish(), settings)
    let advice = advice(on: segments, of: source.batch)
    var receipt = try TracedStep.publish.run(of: source.batch.session) {
      try publication.commit(manifests, cancellation: cancellation).updateViews()
    }
    receipt.unchanged = unchanged
    receipt.warnings += warnings + advice
    return receipt
  }

  /// Returns a warning if other options would suit the batch better.
  private func advice(on segments: [StagedSegment], of batch: Batch) -> [String] {
    let new = segments.filter { $0.holds.contains { $0.status == .captured } }
    let bytes = TimelineAdvice.Bytes(
      all: segments.reduce(0) { $0 + $1.size }, new: new.reduce(0) { $0 + $1.size })
    return TimelineAdvice.text(for: segments.lazy.flatMap(\.holds), of: batch, options, bytes: bytes).map { [$0] } ?? []
  }

  /// Returns a cancellation that also records activity at each question.
  private func recordingActivity(_ cancellation: Cancellation) -> Cancellation {
    Cancellation { [stage] in
      stage.recordActivity()
      return cancellation.isRequested
    }
  }

  /// Encodes all segments of a session into unpublished files.
  private func stageSegments(
    of source: BatchReader, digest: inout BatchDigest, _ profile: Profile?, cancellation: Cancellation
  ) throws -> (segments: [StagedSegment], unchanged: Int, warnings: [String]) {
    var options = options
    options.profile = profile
    var staged: [StagedSegment] = []
    do {
      var segments = SegmentCollector(
        settings, profile: profile, refused: source.batch.refused, advance: stage.advance
      ) { [store] segment, refused, notes in
        staged.append(try StagedSegment(segment, refused: refused, notes: notes, keep: store.stage))
      }
      var last = lastFrame.take()
      defer { lastFrame.keep(last) }
      let (unchanged, facts) = try FrameLoop.walk(
        source, options, keyFrames, after: &last, digest: &digest, into: &segments, cancellation: cancellation)
      guard !staged.isEmpty else { throw BadBatch(undecodable: source.batch, segments.refused) }
      let placement = try PointerPlacement(of: source.batch, on: staged.map(\.holds), cancellation: cancellation)
      let pages = SegmentPages.placed(source.batch.pages, on: staged.map { $0.startMs..<$0.endMs })
      let placed = zip(staged, zip(placement.touches, pages)).map { $0.with($1.0, $1.1) }
      return (placed, unchanged, placement.warnings + facts.warnings)
    } catch {
      for segment in staged { segment.video.discard() }
      throw error
    }
  }
}
