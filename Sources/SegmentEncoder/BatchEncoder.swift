// The whole way of a batch, top to bottom: read, plan, encode, publish. Synchronous, on the caller's thread; several
// batches at once are several threads with one encoder each.

import Glibc

public final class BatchEncoder {
  public struct Options: Sendable {
    public var quality = Quality.balanced
    /// The longest hold, in milliseconds; what is beyond is a gap.
    public var maxHoldMs: Int64 = 5_000
    public var limits = Limits()

    public init() {}
  }

  private let options: Options
  private let settings: EncoderSettings
  private let publication: Publication

  /// - Parameters:
  ///   - staging: where files are written before they are published; shared by all encoders of a process.
  ///   - index: shared likewise.
  public init(_ options: Options, staging: Staging, index: SessionIndex) {
    self.options = options
    settings = EncoderSettings(options.quality, maxHoldMs: options.maxHoldMs)
    publication = Publication(staging: staging, index: index)
  }

  /// Encodes and publishes one batch.
  ///
  /// - Parameters:
  ///   - path: a directory or an archive; `-` is an archive on standard input.
  ///   - session: for a batch that does not name its own.
  ///   - isCancelled: asked before each frame.
  /// - Throws: see ``Disposition``; nothing is published then.
  public func publish(
    _ path: String, session: String? = nil, isCancelled: () -> Bool = { false }
  ) throws -> Receipt {
    let source = try OpenBatch(reading: path, session: session, limits: options.limits)
    guard Timeline.segmentBound(of: source.batch, maxHoldMs: options.maxHoldMs) <= options.limits.segments else {
      throw BadBatch(
        "plan", source.batch.name, "more than the limit of \(options.limits.segments) segments",
        advice: "split the batch")
    }
    if let receipt = try publication.receipt(for: source) { return receipt }
    var digest = try BatchDigest(of: source.batch)
    let segments = try encode(source, digest: &digest, isCancelled: isCancelled)
    defer { for segment in segments { unlink(segment.file) } }
    return try publication.publish(segments, of: source.batch, digest: digest.finish(), settings: settings)
  }

  /// For a batch that workers have died with: finds it published as a whole, or takes back what is published of it.
  ///
  /// - Returns: the receipt of a batch that is published.
  public func settle(_ path: String) throws -> Receipt? {
    try publication.settle(try OpenBatch(reading: path, limits: options.limits))
  }

  /// Decodes each frame once, in order, and encodes the one before as soon as its hold is known.
  private func encode(_ source: OpenBatch, digest: inout BatchDigest, isCancelled: () -> Bool) throws -> [StagedSegment]
  {
    let batch = source.batch
    var timeline = Timeline(of: batch, maxHoldMs: options.maxHoldMs)
    var stage = SegmentStage(
      settings: settings, staging: publication.staging, refused: batch.refused)
    do {
      var images = DecodedFrames(source, limits: options.limits)
      var shown: (picture: Picture, frame: Frame)?
      for frame in batch.frames {
        if isCancelled() { throw Cancelled() }
        if let shown, shown.frame.timeMs == frame.timeMs {
          stage.refuse(
            RefusedFrame(source: frame.source, reason: "\(shown.frame.source) has the same instant and came later"))
          digest.add(frame, try source.image(of: frame))
          continue
        }
        switch try images.picture(of: frame, digest: &digest) {
        case .failure(let refusal):
          stage.refuse(RefusedFrame(source: frame.source, reason: "decode \(frame.source): \(refusal.reason)"))
        case .success(let picture):
          let capture = Capture(
            source: frame.source, timeMs: frame.timeMs, width: picture.width, height: picture.height)
          try stage.show(shown?.picture, in: timeline.append(capture), isCancelled)
          if case .everything(let reason) = frame.masks { stage.note("blacked out: \(reason)", on: frame.source) }
          shown = (picture, frame)
        }
      }
      try stage.show(shown?.picture, in: timeline.finish(endMs: batch.endMs), isCancelled)
      return try stage.finish(batch.name)
    } catch {
      stage.discard()
      throw error
    }
  }
}

/// The pictures of a batch; a file equal to the one before is not decoded again.
private struct DecodedFrames {
  private let source: OpenBatch
  private let decoder: PictureDecoder
  private var previous: (file: [UInt8], masks: Masks, picture: Picture)?

  init(_ source: OpenBatch, limits: Limits) {
    self.source = source
    decoder = PictureDecoder(limits: limits)
  }

  mutating func picture(of frame: Frame, digest: inout BatchDigest) throws -> Result<Picture, RefusedPicture> {
    let image = try source.image(of: frame)
    digest.add(frame, image)
    switch image {
    case .refused(let reason): return .failure(RefusedPicture(reason: reason))
    case .bytes(let file):
      if let previous, previous.file == file, previous.masks == frame.masks { return .success(previous.picture) }
      do {
        let picture = try decoder.picture(from: file, masks: frame.masks)
        previous = (file, frame.masks, picture)
        return .success(picture)
      } catch let refusal as RefusedPicture {
        return .failure(refusal)
      }
    }
  }
}

/// Collects a batch's shots into segments and writes each to the staging directory when it closes.
private struct SegmentStage: ~Copyable {
  private let settings: EncoderSettings
  private let staging: Staging
  private var open: SegmentWriter?
  private var done: [StagedSegment] = []
  /// Refused since the last segment closed.
  private var refused: [RefusedFrame]
  private var notes: [String: String] = [:]

  init(settings: EncoderSettings, staging: Staging, refused: [RefusedFrame]) {
    self.settings = settings
    self.staging = staging
    self.refused = refused
  }

  mutating func refuse(_ frame: RefusedFrame) { refused.append(frame) }

  mutating func note(_ text: String, on source: String) { notes[source] = text }

  mutating func show(_ picture: Picture?, in shots: [Shot], _ isCancelled: () -> Bool) throws {
    guard let picture else { return }
    for shot in shots {
      if isCancelled() { throw Cancelled() }
      if shot.opensSegment {
        open = try SegmentWriter(first: picture, settings: settings)
      }
      try open?.show(picture, in: shot)
      if shot.closing != nil { try close() }
    }
  }

  /// All segments, in order.
  mutating func finish(_ batch: String) throws -> [StagedSegment] {
    guard !done.isEmpty else {
      let first = refused.first.map { "; \($0.reason)" } ?? ""
      throw BadBatch(
        "decode", batch, "none of its \(refused.count) frames can be decoded" + first,
        advice: "check that the recorder writes whole JPEG or PNG files")
    }
    return done
  }

  mutating func discard() {
    for segment in done { unlink(segment.file) }
    done = []
  }

  private mutating func close() throws {
    guard let writer = open.take() else { return }
    done.append(
      try StagedSegment(try writer.finish(), file: staging.temporaryFile(), refused: refused, notes: notes))
    refused = []
  }
}
