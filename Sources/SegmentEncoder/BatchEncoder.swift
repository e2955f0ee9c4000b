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
  package convenience init(
    _ options: Options, staging: Staging, index: SessionViews, keyFrames: KeyFrameCache = KeyFrameCache()
  ) {
    self.init(options, publishingTo: DirectoryStore(staging: staging, index: index), keyFrames: keyFrames)
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

  /// Reads a batch and checks its limits.
  ///
  /// - Parameters:
  ///   - name: the name that the producer gave the batch; nil if the path tells it.
  ///   - files: the images that the batch consists of; then `path` is their directory, which names the batch.
  ///   - profile: measures the stages of this batch; nil for that of the options.
  package func read(
    _ path: String, named name: String? = nil, files: [String] = [], session: String? = nil, profile: Profile? = nil,
    cancellation: Cancellation = .never
  ) throws -> ReadBatch {
    stage.enter(.open)
    defer { stage.enter(.queue) }
    let profile = profile ?? options.profile
    let opening = profile?.start(.open)
    var input = options.input
    input.session = session ?? input.session
    (input.takesFew, input.takesAdditions) = (true, true)
    let batch = try BatchSessions(
      reading: path, named: name, files: files, options: input, limits: options.limits, unpacker: options.decoders,
      cancellation: recordingActivity(cancellation))
    return ReadBatch(batch: batch, opening: opening, profile: profile)
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

  /// Whether an operator lets a session be published as it is, by the name of that decision: see ``BadBatch/marks``.
  package typealias Acceptance = (_ mark: String) throws -> Bool

  /// Encodes and publishes a batch that was read, session by session.
  ///
  /// - Parameter isAccepted: asked about sessions of which pictures would be lost.
  /// - Returns: a receipt for each session; the first one lists the sessions that were refused.
  /// - Throws: ``BadBatch`` if no session can be published.
  package func publish(
    _ batch: ReadBatch, isAccepted: @escaping Acceptance = { _ in false }, cancellation: Cancellation
  ) throws -> [Receipt] {
    defer { stage.enter(.queue) }
    let cancellation = recordingActivity(cancellation)
    stage.begin(frames: batch.frames)
    // The batch is opened once, for all of its sessions.
    var opening = batch.opening
    return try forEachSession(of: batch, isAccepted, cancellation) { reader in
      let own = opening.take()
      guard let videos = reader.batch.videos else {
        let work = SessionWork(
          read: reader, profile: batch.profile, isAccepted: isAccepted, cancellation: cancellation)
        return try encode(work, own)
      }
      own?.stop()
      let copying = batch.profile?.start(.publish)
      defer { copying?.stop() }
      return try copy(reader, videos, isAccepted, cancellation)
    }
  }

  /// Publishes finished segments. Their coded pictures stay as they are.
  private func copy(
    _ reader: BatchReader, _ videos: FinishedVideos, _ isAccepted: Acceptance, _ cancellation: Cancellation
  ) throws -> Receipt {
    guard options.canvas == nil, options.maxSide == nil else {
      throw BadBatch(
        "publish", reader.batch.name, "its pictures are coded already, and keep their size",
        advice: "leave out --\(options.canvas == nil ? "max-side" : "canvas"); reencode makes pictures smaller")
    }
    stage.enter(.encode)
    // The decoders load it, too, and cannot say that it is missing.
    try FormatLibrary.load()
    var segments = FinishedSegments(reader, videos, decoders: options.decoders, cancellation)
    var (receipt, loss) = try segments.publish(to: store, advance: stage.advance)
    guard var loss else { return receipt }
    let mark = try reader.mark(cancellation)
    guard try !isAccepted(mark) else { return receipt }
    loss.marks = [mark]
    receipt.refusedSessions = [RefusedSession(session: receipt.session.description, error: loss)]
    return receipt
  }

  /// For a batch that killed workers: finds the sessions that are published as a whole, and rolls the others back.
  ///
  /// - Returns: the receipts of the sessions that are published; none if none is.
  package func rollBack(
    _ batch: ReadBatch, isAccepted: Acceptance = { _ in false }, cancellation: Cancellation
  ) throws -> [Receipt] {
    defer { stage.enter(.queue) }
    stage.enter(.open)
    let cancellation = recordingActivity(cancellation)
    return try forEachSession(of: batch, isAccepted, cancellation) { reader in
      try store.rollBack(reader, cancellation: cancellation)?.updateViews()
    }
  }

  /// Calls `body` for each session. One that is refused does not stop the others.
  private func forEachSession(
    of batch: ReadBatch, _ isAccepted: Acceptance, _ cancellation: Cancellation,
    _ body: (BatchReader) throws -> Receipt?
  ) throws -> [Receipt] {
    var receipts: [Receipt] = []
    var refused = batch.batch.refused.map { ($0, mark: batch.batch.mark(of: $0)) }
    for reader in batch.batch.readers {
      do {
        if let receipt = try body(reader) { receipts.append(receipt) }
      } catch let deleted as SessionDeleted {
        receipts.append(Receipt(refusing: batch.batch.name, for: deleted))
      } catch let old as BatchTooOld {
        receipts.append(Receipt(refusing: batch.batch.name, of: old.session, because: "\(old)"))
      } catch {
        guard case .quarantine(let bad) = Disposition(of: error, batch: batch.batch.name) else { throw error }
        let mark = try bad.marks.first ?? (batch.allSessions.count > 1 ? reader.mark(cancellation) : "")
        refused.append((RefusedSession(session: reader.batch.session.description, error: bad), mark))
      }
    }
    for addition in batch.batch.additions {
      do {
        receipts.append(try store.add(addition, cancellation: cancellation))
      } catch let deleted as SessionDeleted {
        receipts.append(Receipt(refusing: batch.batch.name, for: deleted))
      }
    }
    guard !receipts.isEmpty else {
      guard var first = refused.first?.0.error else { return [] }
      first.marks = refused.flatMap(\.0.error.marks)
      throw first
    }
    receipts[0].refused += refused.map { RefusedFrame(source: "session \($0.0.session)", reason: "\($0.0.error)") }
    receipts[0].refusedSessions =
      try receipts.flatMap(\.refusedSessions)
      + refused.filter { try !isAccepted($0.mark) }.map { session, mark in
        var error = session.error
        error.marks = [mark]
        return RefusedSession(session: session.session, error: error)
      }
    return receipts
  }

  /// Takes one session of a batch through its steps: prepare, encode, commit, update views.
  private func encode(_ work: SessionWork, _ opening: Profile.Watch?) throws -> Receipt {
    stage.enter(.open)
    let (read, cancellation) = (work.read, work.cancellation)
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
    case .alreadyPublished(let published): return try confirm(published, work)
    case .ready(let ready): (source, publication) = (read, ready)
    case .continued(let rest, let ready): (source, publication) = (rest, ready)
    }
    do {
      return try encode(source, to: publication, work)
    } catch let conflict as BadBatch where batch.folder != nil && conflict.marks.isEmpty {
      // Another worker may have published more of the folder meanwhile.
      switch try store.prepare(read, cancellation: cancellation) {
      case .alreadyPublished(let published): return try confirm(published, work)
      case .ready: throw conflict
      case .continued(let rest, let ready):
        guard rest.batch.frames.count < source.batch.frames.count else { throw conflict }
        return try encode(rest, to: ready, work)
      }
    }
  }

  /// Whether batches stay where they are. Then pictures of a folder that came too early are not lost.
  private var stays: Bool { options.limits.splitsFolders }

  /// The work on one session.
  private struct SessionWork {
    /// The session with all its frames, also those that are published already.
    let read: BatchReader
    let profile: Profile?
    let isAccepted: Acceptance
    let cancellation: Cancellation

    /// Throws ``BadBatch`` if most of the pictures would not be shown, and nobody has accepted that.
    ///
    /// - Parameter hidden: the number of frames that are not shown, companions aside.
    func requireShown(hidden: Int, _ refused: [RefusedFrame]) throws {
      guard var bad = PictureLoss.error(of: read.batch, hidden: hidden, refused) else { return }
      let mark = try read.mark(cancellation)
      if try isAccepted(mark) { return }
      bad.marks = [mark]
      throw bad
    }
  }

  /// Returns the receipt of a session that was published before. With its batch, pictures may be lost that are none of its frames.
  private func confirm(_ published: consuming PublishedBatch, _ work: SessionWork) throws -> Receipt {
    let receipt = try published.updateViews()
    let early = stays ? 0 : receipt.refused.count(where: \.isEarly)
    try work.requireShown(hidden: early, work.read.batch.refused + receipt.refused.filter(\.isEarly))
    return receipt
  }

  /// Takes a prepared session through the further steps.
  private func encode(_ source: BatchReader, to publication: any Publication, _ work: SessionWork) throws -> Receipt {
    stage.enter(.encode)
    var digest = BatchDigest(of: source.batch)
    let staged = try TracedStep.encode.run(of: source.batch.session) {
      let decoding = TracedDecoding(work.profile)
      defer { decoding.end() }
      return try stageSegments(of: source, digest: &digest, decoding.profile, cancellation: work.cancellation)
    }
    defer { for segment in staged.segments { segment.video.discard() } }
    guard !staged.segments.isEmpty else { return try withoutNews(source, staged.refused, work) }
    try work.requireShown(hidden: (stays ? 0 : source.batch.leftOut.early) + staged.hidden, staged.refused)
    stage.enter(.publish)
    let publishing = work.profile?.start(.publish)
    let manifests = SegmentManifest.all(staged.segments, of: source.batch, digest: digest.finish(), settings)
    let advice = advice(on: staged.segments, of: source.batch)
    var receipt = try TracedStep.publish.run(of: source.batch.session) {
      let published = try publication.commit(manifests, cancellation: work.cancellation)
      publishing?.stop()
      let updating = work.profile?.start(.views)
      defer { updating?.stop() }
      return try published.updateViews()
    }
    (receipt.unchanged, receipt.screen) = (staged.unchanged, staged.screen)
    receipt.refused += staged.left
    receipt.warnings += staged.warnings + advice
    return receipt
  }

  /// Returns the receipt of a folder whose new frames cannot be decoded: they may still be being written.
  ///
  /// - Parameters:
  ///   - rest: the frames that are not published.
  ///   - refused: all of them.
  private func withoutNews(_ rest: BatchReader, _ refused: [RefusedFrame], _ work: SessionWork) throws -> Receipt {
    let read = work.read
    let count = read.batch.frames.count - rest.batch.frames.count
    if rest.batch.folder != nil, !read.batch.isFinal, count > 0 {
      let left = refused.suffix(rest.batch.frames.count).map(\.leftForLater)
      let beginning = read.reading(read.batch.with(first: count, refusing: left, limits: read.limits))
      switch try store.prepare(beginning, cancellation: work.cancellation) {
      case .alreadyPublished(let published):
        let receipt = try published.updateViews()
        try work.requireShown(hidden: (stays ? 0 : rest.batch.leftOut.early) + rest.batch.frames.count, refused)
        return receipt
      case .ready: break
      case .continued: break
      }
    }
    throw BadBatch(undecodable: rest.batch, refused)
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

  /// The segments of a session that wait for publication.
  private struct StagedSession {
    var segments: [StagedSegment] = []
    /// Frames that are not shown, also those that the reader refused.
    var refused: [RefusedFrame] = []
    /// Frames that are left for a later run, and are among ``refused``.
    var left: [RefusedFrame] = []
    /// The number of frames that are not shown, companions aside.
    var hidden = 0
    /// The number of frames that look like the one before.
    var unchanged = 0
    /// The screen at its end; nil if nobody asks for it.
    var screen: StillScreen?
    var warnings: [String] = []
  }

  /// Encodes all segments of a session into unpublished files. There are none if no frame can be decoded.
  private func stageSegments(
    of source: BatchReader, digest: inout BatchDigest, _ profile: Profile?, cancellation: Cancellation
  ) throws -> StagedSession {
    var options = options
    options.profile = profile
    var staged: [StagedSegment] = []
    do {
      var segments = SegmentCollector(
        settings, profile: profile, refused: source.batch.refused, advance: stage.advance
      ) { [store] segment, refused, notes in
        staged.append(try StagedSegment(segment, refused: refused, notes: notes, keep: store.stage))
      }
      var session = StagedSession()
      var last = lastFrame.take()
      defer { lastFrame.keep(last) }
      let found = try FrameLoop.walk(
        source, options, keyFrames, after: &last, digest: &digest, into: &segments, cancellation: cancellation)
      session.left = segments.left
      session.refused = staged.flatMap(\.refused) + segments.refused + segments.left
      session.hidden = source.batch.frames.count - staged.captured - session.refused.count(where: \.isCompanion)
      guard !staged.isEmpty else { return session }
      let placement = try PointerPlacement(of: source.batch, on: staged.map(\.holds), cancellation: cancellation)
      let pages = SegmentPages.placed(source.batch.pages, on: staged.map { $0.startMs..<$0.endMs })
      (session.unchanged, session.screen) = (found.unchanged, found.screen)
      let labels = source.batch.labels.divided(at: staged.map(\.startMs))
      session.segments = staged.indices.map { staged[$0].with(placement.touches[$0], pages[$0], labels[$0]) }
      session.warnings = placement.warnings + found.facts.warnings
      return session
    } catch {
      for segment in staged { segment.video.discard() }
      throw error
    }
  }
}

extension [StagedSegment] {
  /// The number of frames that they show.
  fileprivate var captured: Int { reduce(0) { $0 + $1.holds.count { $0.status == .captured } } }
}

extension BatchReader {
  /// Returns the name of the decision to publish a session as it is: of its frames, and of the names of what is refused.
  fileprivate func mark(_ cancellation: Cancellation) throws -> String {
    let digest = try BatchDigest.of(self, cancellation: cancellation)
    return SHA256.hex(of: Array("accepted/1\n\(digest)\n\(batch.refused.map(\.source).joined(separator: "\n"))".utf8))
  }
}

extension BatchSessions {
  /// Returns the name of the decision to leave out a session that cannot be read.
  fileprivate func mark(of refused: RefusedSession) -> String {
    SHA256.hex(of: Array("left out/1\n\(name)\n\(refused.session)\n\(refused.error)".utf8))
  }
}
