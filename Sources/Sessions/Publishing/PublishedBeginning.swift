// A folder of pictures grows between two runs. The beginning of a batch that is a part of such a folder may be published already, as
// one batch or as several. Only the frames behind it are new.

import Encoding
import FileSystem
import FrameBatches
import JSON

/// The beginning of a batch, as far as it is published.
struct PublishedBeginning {
  /// The segments, in order.
  private(set) var segments: [PublishedSegment] = []
  /// The number of the batch's frames that they are made of, or that came too early behind them.
  private var count = 0
  /// The last of these frames, which came too early: the picture before them is published for their time, and does not change.
  private var refused: [RefusedFrame] = []
  /// The frames from before the first segment that stays in the session, as one.
  private var removed: [RefusedFrame] = []
  /// Frames between the published ones that could not be decoded when these were published.
  private var missed: [RefusedFrame] = []
  private let source: BatchReader
  /// Reads the manifest of a published segment.
  private let manifest: (PublishedSegment) throws -> JSONValue

  /// - Parameters:
  ///   - source: a batch; only one of a ``Batch/folder`` can have a beginning.
  ///   - near: the published segments that start in the batch's time, or reach into it, in order.
  ///   - retention: of the session; nil if none of its segments was removed.
  ///   - manifest: reads the manifest of a published segment.
  ///   - cancellation: asked before each frame that is read.
  /// - Throws: ``BadBatch`` if no frame can be shown; ``BatchTooOld``.
  init(
    of source: BatchReader, among near: [PublishedSegment], _ retention: SessionRetention?, cancellation: Cancellation,
    manifest: @escaping (PublishedSegment) throws -> JSONValue
  ) throws {
    (self.source, self.manifest) = (source, manifest)
    let batch = source.batch
    guard batch.folder != nil else { return }
    if let retention { try skipFrames(before: retention, near) }
    let firstMs = count < batch.frames.count ? batch.frames[count].timeMs : .max
    // The frames before this part are published for longer.
    let before = near.last { $0.startMs < firstMs }
    if let before, count < batch.frames.count { refuseFrames(tooEarlyBehind: before) }
    var rest = near.drop { $0.startMs < firstMs }
    while let first = rest.first, count < batch.frames.count {
      let published = Array(rest.prefix { $0.batchDigest == first.batchDigest })
      guard first.part == 1, published.isWhole, let end = try end(of: published, cancellation) else { return }
      segments += published
      rest = rest.dropFirst(published.count)
      count = end.index
      missed += end.missed
      refuseFrames(tooEarlyBehind: published[published.count - 1])
    }
    guard count == batch.frames.count else { return }
    if segments.isEmpty {
      let others = refused.count > 1 ? "; \(refused.count - 1) other frames came as early" : ""
      throw BadBatch(
        "publish", batch.name, "\(refused[0].source) was \(refused[0].reason)\(others)",
        advice: "send later pictures too, or name another session if these are of another recorder")
    }
  }

  /// Skips the frames from before the first segment that stays, and those of a batch whose first segments were removed: its digest
  /// cannot be compared, so its captures are.
  private mutating func skipFrames(
    before retention: SessionRetention, _ near: [PublishedSegment]
  ) throws(BatchTooOld) {
    let frames = source.batch.frames
    count = frames.prefix { retention.removes($0.timeMs) }.count
    guard count > 0 else { return }
    let others = count > 1 ? "; so were \(count - 1) other frames" : ""
    let startText = retention.startMs.dateText
    removed = [
      RefusedFrame(
        source: frames[0].source,
        reason: "captured before \(startText), where the session begins: earlier segments were removed\(others)")
    ]
    if let first = near.first, first.part > 1 {
      let cut = near.prefix { $0.batchDigest == first.batchDigest }
      let captures = cut.flatMap { $0.frames.filter(\.isCaptured).map(\.timeMs) }
      let lastMs = captures.last ?? .min
      let behind = frames[count...].prefix { $0.timeMs <= lastMs }
      if cut.last?.part == first.parts, Set(captures).isSubset(of: behind.map(\.timeMs)) {
        segments += cut
        count += behind.count
      }
    }
    if count == frames.count, segments.isEmpty { throw retention.tooOld(source.batch) }
  }

  /// Refuses the next frames if they cannot follow a segment.
  private mutating func refuseFrames(tooEarlyBehind last: PublishedSegment) {
    let next = source.batch.frames[count...]
    // A batch that ends before the segment does cannot follow it, whatever its frames.
    let early = source.batch.endMs <= last.endMs ? next : next.prefix { !last.canBeFollowed(atMs: $0.timeMs) }
    refused = early.map {
      RefusedFrame(
        source: $0.source,
        reason: "captured at \($0.timeMs), but the picture before it was published, on screen until \(last.endMs)",
        kind: .early)
    }
    count += early.count
  }

  /// Returns the index behind the frames that a published batch is made of, and those of them that it does not show; nil if it is not
  /// made of the next frames.
  private func end(
    of published: [PublishedSegment], _ cancellation: Cancellation
  ) throws -> (index: Int, missed: [RefusedFrame])? {
    let frames = source.batch.frames
    guard let last = published.last, let lastMs = last.frames.last?.timeMs,
      frames[count].timeMs <= published[0].startMs
    else { return nil }
    let endMs = last.endMs + last.gapAfterMs
    let captured = Set(published.flatMap { $0.frames.filter(\.isCaptured).map(\.timeMs) })
    var refused: Set<String>?
    func wasRefused(_ frame: Frame) throws -> Bool {
      if captured.contains(frame.timeMs) { return false }
      let sources = try refused ?? refusedSources(in: published)
      refused = sources
      return sources.contains(frame.source)
    }
    var texts = FrameDigests(of: source.batch.session)
    var digest = BatchDigest(of: source.batch, intervalMs: last.intervalMs, endMs: endMs, isFinal: last.isFinal)
    // Without the frames that could not be decoded then. Earlier versions did not leave them out.
    var shown: BatchDigest?
    var missed: [RefusedFrame] = []
    for index in count..<frames.count {
      let frame = frames[index]
      guard frame.timeMs < endMs else { return nil }
      try cancellation.check()
      let text = texts.digest(of: frame, try source.images(of: frame)).text
      if try wasRefused(frame) {
        shown = shown ?? digest
        missed.append(frame.missed)
      } else {
        shown?.add(text)
      }
      digest.add(text)
      // Frames behind the last one that is shown cannot be decoded.
      guard frame.timeMs >= lastMs else { continue }
      for var whole in [digest, shown].compactMap({ $0 }) where whole.finish() == last.batchDigest {
        let behind = try frames[(index + 1)...].prefix { try $0.timeMs < endMs && wasRefused($0) }
        return (behind.endIndex, missed + behind.map(\.missed))
      }
    }
    return nil
  }

  /// The names of the frames that the manifests of a published batch list as refused.
  private func refusedSources(in published: [PublishedSegment]) throws -> Set<String> {
    Set(
      try published.flatMap { segment in
        try manifest(segment).object?["refused"]?.array?.compactMap { $0.object?["source"]?.string } ?? []
      })
  }

  /// Returns what is not published; nil if there is nothing.
  var rest: BatchReader? {
    guard count > 0 else { return source }
    guard count < source.batch.frames.count else { return nil }
    return source.reading(
      source.batch.without(first: count, refusing: removed + missed + refused, limits: source.limits))
  }

  /// Returns the receipt of a batch without a ``rest``.
  var receipt: Receipt {
    let batch = source.batch
    return Receipt(
      segments, of: batch, refused: batch.refused + removed + missed.shortened(to: source.limits) + refused,
      duplicate: true, warnings: batch.warnings)
  }
}

extension PublishedSegment {
  /// Whether a batch can begin at an instant behind this segment.
  fileprivate func canBeFollowed(atMs startMs: Int64) -> Bool {
    startMs >= endMs || part == parts && leavesSeam(atMs: startMs)
  }
}

extension Frame {
  /// The entry of a frame that could not be decoded when the pictures around it were published.
  fileprivate var missed: RefusedFrame {
    RefusedFrame(
      source: source, reason: "it could not be decoded when the pictures around it were published, which do not change")
  }
}
