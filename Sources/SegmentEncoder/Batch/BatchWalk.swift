// The way through a batch that encoding and inspecting share: each frame is read and decoded once, in order, and the shots
// of the one before are known as soon as its hold is.

/// What is done with a batch's shots as they become known.
protocol ShotSink: ~Copyable {
  mutating func refuse(_ frame: RefusedFrame)
  /// Something about a frame that is shown all the same.
  mutating func note(_ text: String, on source: String)
  mutating func show(_ picture: Picture, in shots: [Shot], _ isCancelled: () -> Bool) throws
}

enum BatchWalk {
  static func walk<Sink: ShotSink & ~Copyable>(
    _ source: OpenBatch, _ options: BatchEncoder.Options, digest: inout BatchDigest, into sink: inout Sink,
    isCancelled: () -> Bool
  ) throws {
    let batch = source.batch
    var timeline = Timeline(of: batch, maxHoldMs: options.maxHoldMs)
    var images = DecodedFrames(source, options)
    var shown: (picture: Picture, frame: Frame)?
    for frame in batch.frames {
      if isCancelled() { throw Cancelled() }
      if let shown, shown.frame.timeMs == frame.timeMs {
        sink.refuse(
          RefusedFrame(source: frame.source, reason: "\(shown.frame.source) has the same instant and came later"))
        digest.add(frame, try source.image(of: frame))
        continue
      }
      switch try images.picture(of: frame, digest: &digest) {
      case .failure(let refusal):
        sink.refuse(RefusedFrame(source: frame.source, reason: "decode \(frame.source): \(refusal.reason)"))
      case .success(let picture):
        let capture = Capture(
          source: frame.source, timeMs: frame.timeMs, width: picture.width, height: picture.height)
        let shots = timeline.append(capture)
        if let shown { try sink.show(shown.picture, in: shots, isCancelled) }
        if case .everything(let reason) = frame.masks { sink.note("blacked out: \(reason)", on: frame.source) }
        shown = (picture, frame)
      }
    }
    let shots = timeline.finish(endMs: batch.endMs)
    if let shown { try sink.show(shown.picture, in: shots, isCancelled) }
  }
}

extension BadBatch {
  /// A batch of which nothing can be shown.
  init(undecodable batch: String, _ refused: [RefusedFrame]) {
    let first = refused.first.map { "; \($0.reason)" } ?? ""
    self.init(
      "decode", batch, "none of its \(refused.count) frames can be decoded" + first,
      advice: "check that the recorder writes whole JPEG, PNG or WebP files")
  }
}

/// The pictures of a batch; a file equal to the one before is not decoded again.
private struct DecodedFrames {
  private let source: OpenBatch
  private let decoder: PictureDecoder
  private var previous: (file: [UInt8], masks: Masks, picture: Picture)?

  init(_ source: OpenBatch, _ options: BatchEncoder.Options) {
    self.source = source
    decoder = PictureDecoder(limits: options.limits, background: options.background)
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
