// The way through a batch that encoding and inspecting share: each frame is read and decoded once, in order, and the shots
// of the one before are known as soon as its hold is.

/// What is done with a batch's shots as they become known.
protocol ShotSink: ~Copyable {
  mutating func refuse(_ frame: RefusedFrame)
  /// Something about a frame that is shown all the same.
  mutating func note(_ text: String, on capture: Capture)
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
        digest.add(frame, try source.images(of: frame))
        continue
      }
      switch try images.picture(of: frame, digest: &digest) {
      case .failure(let refusal):
        sink.refuse(RefusedFrame(source: frame.source, reason: "decode \(frame.source): \(refusal.reason)"))
      case .success(let decoded):
        let picture = decoded.picture
        let capture = Capture(
          source: frame.source, timeMs: frame.timeMs, width: picture.width, height: picture.height)
        let shots = timeline.append(capture)
        if let shown { try sink.show(shown.picture, in: shots, isCancelled) }
        let notes = (frame.look.blackout.map { ["blacked out: \($0)"] } ?? []) + decoded.notes
        if !notes.isEmpty { sink.note(notes.joined(separator: "; "), on: capture) }
        shown = (picture, frame)
      }
    }
    let shots = timeline.finish(endMs: batch.endMs)
    if let shown { try sink.show(shown.picture, in: shots, isCancelled) }
  }
}

extension BadBatch {
  /// A batch of which nothing can be shown.
  init(undecodable batch: Batch, _ refused: [RefusedFrame]) {
    // Of a frame, rather than of what lay about beside them.
    let first = (refused.first { $0.reason.hasPrefix("decode ") } ?? refused.first).map { "; \($0.reason)" } ?? ""
    self.init(
      "decode", batch.name, "none of its \(batch.frames.count) frames can be decoded" + first,
      advice: "check that the recorder writes whole JPEG, PNG or WebP files, under the names that it lists")
  }
}

/// The pictures of a batch; files equal to those of the frame before are not decoded again.
private struct DecodedFrames {
  private let source: OpenBatch
  private let decoder: any FrameDecoding
  /// Larger frames are not compared, for they would be in memory twice.
  private static let comparedBytes = 32 << 20
  private var previous: (files: [[UInt8]], look: Look, decoded: DecodedPicture)?

  init(_ source: OpenBatch, _ options: BatchEncoder.Options) {
    self.source = source
    decoder =
      options.decoders.map(SandboxedDecoder.init)
      ?? PictureDecoder(limits: options.limits, background: options.background)
  }

  mutating func picture(of frame: Frame, digest: inout BatchDigest) throws -> Result<DecodedPicture, RefusedPicture> {
    let images = try source.images(of: frame)
    digest.add(frame, images)
    var files: [[UInt8]] = []
    for (path, image) in zip(frame.paths, images) {
      switch image {
      case .bytes(let file): files.append(file)
      case .refused(let reason):
        let name = images.count > 1 ? "\(lastComponent(of: path)): " : ""
        return .failure(RefusedPicture(reason: name + reason))
      }
    }
    if let previous, previous.files == files, previous.look == frame.look { return .success(previous.decoded) }
    do {
      let decoded = try decoder.picture(from: files, frame.look)
      // What is compared with the next frame is in memory together with it.
      previous = files.reduce(0) { $0 + $1.count } <= Self.comparedBytes ? (files, frame.look, decoded) : nil
      return .success(decoded)
    } catch let refusal as RefusedPicture {
      return .failure(refusal)
    }
  }
}
