// Frames in, segments out. The parts are those of a batch's path: a sequence of frames, a collector of segments, manifests.

import Encoding
import FileSystem
import FrameBatches
import JSON
import Sessions

/// The reason why ``FrameEncoder`` did not take a frame, or cannot go on. Its methods throw nothing else. Their types do not say so,
/// because the compiler of Swift 6.3 crashes at `catch .refused(let frame)` of a typed error.
public enum FrameEncoderError: Error, CustomStringConvertible {
  /// The frame is not shown: its bytes or its instant cannot be used. The encoder takes the next one.
  case refused(RefusedFrame)
  /// The encoder takes no more frames. The segments that it has returned are whole.
  case ended(reason: String)
  /// The machine failed: no memory, or no decoder process. The frame was not taken; it may be appended again.
  case environment(any Error)

  /// The error as a sentence.
  public var description: String {
    switch self {
    case .refused(let frame): "\(frame.source): \(frame.reason)"
    case .ended(let reason): "the encoder has ended: \(reason)"
    case .environment(let error): "\(error)"
    }
  }
}

/// Encodes frames of one session into segments, one after the other, in memory.
///
/// It keeps one open segment: a segment closes once a frame is appended that does not belong to it. It writes no file, and reads no
/// environment. Its segments are those of ``BatchEncoder`` for the same frames and options, byte for byte.
///
/// One thread uses it at a time, and may hand it to another one. `segments(of:)` of an asynchronous sequence of frames is its form for
/// Swift concurrency.
///
/// ```swift
/// var encoder = try FrameEncoder(session: session)
/// var segments = try encoder.append(CapturedFrame(image: jpeg, timeMs: 1_767_859_512_340))
/// segments += try encoder.finish()
/// ```
public struct FrameEncoder: ~Copyable {
  private let session: SessionID
  private let settings: EncoderSettings
  private let limits: Limits
  private let intervalMs: Int64
  private let capture: Batch.Capture
  private let maxHoldMs: Int64
  private let segmentMs: Int64
  private let metadata: JSONValue
  private var frames: FrameSequence
  private var digests: FrameDigests
  /// The texts of the frames of the open segment for its digest, in the order of their captures.
  private var texts: [(timeMs: Int64, text: String)] = []
  private var consumer: Consumer
  private let closed: ClosedSegments
  private var lastMs: Int64?
  /// Why no more frames are taken.
  private var end: String?

  /// Begins a session, or a further part of it.
  ///
  /// - Parameters:
  ///   - session: the name of the session.
  ///   - intervalMs: the nominal interval of captures, in milliseconds, from 1 to 3 600 000.
  ///   - capturesChanges: whether frames are captured when the picture changes: then it stays on screen up to the next frame, however
  ///     long that takes. Otherwise a time without a frame beyond ``EncodingOptions/maxHoldMs`` is a gap.
  ///   - metadata: a JSON object that each manifest repeats.
  ///   - options: their limits hold for each frame, and their limit of segments for each hold.
  /// - Throws: ``FrameEncoderError/ended(reason:)`` for an interval or metadata that cannot be used.
  public init(
    session: SessionID, intervalMs: Int64 = 1_000, capturesChanges: Bool = false, metadata: String? = nil,
    _ options: BatchEncoder.Options = BatchEncoder.Options()
  ) throws {
    guard Limits.intervals.contains(intervalMs) else {
      throw FrameEncoderError.ended(reason: "intervalMs \(intervalMs) is not between 1 and 3600000")
    }
    let object = try Self.object(metadata, limit: options.limits.metadataBytes)
    self.init(session, intervalMs, capturesChanges, object, options)
  }

  /// Throws nothing: Swift 6.2 destroys fields that are not set when an initialiser of a type that cannot be copied throws.
  private init(
    _ session: SessionID, _ intervalMs: Int64, _ capturesChanges: Bool, _ metadata: JSONValue,
    _ options: BatchEncoder.Options
  ) {
    FFmpegLog.silence()
    self.metadata = metadata
    self.session = session
    self.intervalMs = intervalMs
    capture = capturesChanges ? .onChange : .interval
    (limits, maxHoldMs, segmentMs) = (options.limits, options.maxHoldMs, options.segmentMs)
    settings = EncoderSettings(options)
    let timeline = Timeline(
      intervalMs: intervalMs, maxHoldMs: capturesChanges ? nil : maxHoldMs, segmentMs: segmentMs)
    frames = FrameSequence(of: session, timeline, options, nil, after: nil, Self.cancellation)
    digests = FrameDigests(of: session)
    let closed = ClosedSegments()
    self.closed = closed
    consumer = Consumer(
      collector: SegmentCollector(settings, profile: options.profile, refused: [], advance: {}) {
        closed.add($0, refused: $1, notes: $2)
      }, maximumRefused: options.limits.refusals)
  }

  /// Work in a task ends when the task is cancelled.
  private static var cancellation: Cancellation { Cancellation { Task.isCancelled } }

  private static func object(_ metadata: String?, limit: Int) throws -> JSONValue {
    guard let metadata else { return .null }
    guard metadata.utf8.count <= limit else {
      throw FrameEncoderError.ended(
        reason: "the metadata has \(metadata.utf8.count) bytes, more than the limit of \(limit)")
    }
    guard let value = try? JSONParser.parse(Array(metadata.utf8)), value.object != nil else {
      throw FrameEncoderError.ended(reason: "the metadata is not a JSON object")
    }
    return value
  }

  /// Appends a frame, which is later than the one before.
  ///
  /// - Parameter frame: a picture and its instant.
  /// - Returns: the segments that close: none most times, one at a cut, more before a frame that comes long after the one before.
  /// - Throws: ``FrameEncoderError``. After ``FrameEncoderError/refused(_:)`` and ``FrameEncoderError/environment(_:)`` the encoder takes
  ///   further frames.
  public mutating func append(_ frame: CapturedFrame) throws -> [Segment] {
    if let end { throw FrameEncoderError.ended(reason: end) }
    if let reason = reasonToRefuse(frame) {
      consumer.refuse(RefusedFrame(source: frame.source, reason: reason))
      try throwRefusal()
    }
    let (batchFrame, image) = (frame.frame, frame.refusal(limits).map(FrameFile.refused) ?? .bytes(frame.bytes))
    let (text, identity) = digests.digest(of: batchFrame, [image])
    do {
      try frames.append(batchFrame, [image], identity, into: &consumer, Self.cancellation)
    } catch {
      throw failure(error)
    }
    try throwRefusal()
    lastMs = frame.timeMs
    // The segments that have closed end before this frame.
    let segments = try take(isFinal: false)
    texts.append((frame.timeMs, text))
    return segments
  }

  /// Ends the session's recording.
  ///
  /// - Parameters:
  ///   - endMs: when the last frame leaves the screen, in unix milliseconds; by default one interval after its capture.
  ///   - isFinal: whether the session ends here.
  /// - Returns: the last segments; none if no frame was taken.
  /// - Throws: ``FrameEncoderError/ended(reason:)`` if the encoder has ended, or the end is not after the last capture.
  public consuming func finish(endMs: Int64? = nil, isFinal: Bool = false) throws -> [Segment] {
    guard let lastMs else { return [] }
    if end == nil {
      let endMs = endMs ?? lastMs + intervalMs
      guard endMs > lastMs, limits.instants.contains(endMs) else {
        throw FrameEncoderError.ended(reason: "the end \(endMs) is not after the last capture \(lastMs)")
      }
      if let reason = reasonNotToHold(untilMs: endMs, lastMs) { throw FrameEncoderError.ended(reason: reason) }
      try finishFrames(endMs: endMs)
    }
    return try take(isFinal: isFinal)
  }

  private mutating func finishFrames(endMs: Int64) throws {
    do {
      try frames.finish(endMs: endMs, into: &consumer, Self.cancellation)
    } catch {
      throw failure(error)
    }
  }

  // MARK: refusals and failures

  /// Throws the refusal of the frame that was appended last, if it was refused.
  private mutating func throwRefusal() throws {
    if let refusal = consumer.refusal.take() { throw FrameEncoderError.refused(refusal) }
  }

  private func reasonToRefuse(_ frame: CapturedFrame) -> String? {
    if let fault = limits.fault(ofInstant: frame.timeMs) { return fault }
    guard frame.source.utf8.count <= limits.pathBytes else {
      return "its name has more than the limit of \(limits.pathBytes) bytes"
    }
    guard let lastMs else { return nil }
    guard frame.timeMs > lastMs else { return "instant \(frame.timeMs) is not after the frame before, \(lastMs)" }
    guard frame.timeMs - lastMs <= limits.jumpMs else {
      return "instant \(frame.timeMs) is more than \(limits.jumpMs) ms after the frame before: a clock that jumped"
    }
    return reasonNotToHold(untilMs: frame.timeMs, lastMs)
  }

  /// The reason why the last frame cannot stay on screen for so long; nil if it can.
  private func reasonNotToHold(untilMs: Int64, _ lastMs: Int64) -> String? {
    let holdMs = capture == .onChange ? untilMs - lastMs : min(untilMs - lastMs, maxHoldMs)
    guard holdMs / segmentMs >= Int64(limits.segments) else { return nil }
    return "the frame before would stay on screen for more than the limit of \(limits.segments) segments"
  }

  /// Decides what an error means for the encoder.
  private mutating func failure(_ error: any Error) -> FrameEncoderError {
    // A decoder that was killed: a batch is retried as a whole, which cannot be said of a stream.
    let isTransient = error is DecoderOutOfResources || Disposition(of: error, batch: session.description) == .retry
    if !consumer.isEncoding, isTransient { return .environment(error) }
    let reason = error is Cancelled ? "it was cancelled" : "\(error)"
    end = reason
    return .ended(reason: reason)
  }

  // MARK: segments

  /// Returns the segments that have closed.
  private mutating func take(isFinal: Bool) throws -> [Segment] {
    let list = closed.take()
    var segments: [Segment] = []
    for (index, segment) in list.enumerated() {
      do {
        segments.append(try finished(segment, isFinal: isFinal && index == list.count - 1))
      } catch {
        throw failure(error)
      }
    }
    return segments
  }

  private mutating func finished(_ segment: ClosedSegments.Closed, isFinal: Bool) throws -> Segment {
    let staged = try StagedSegment(segment.encoded, refused: segment.refused, notes: segment.notes) { .bytes($0) }
    let batch = Batch(
      name: "\(session)@\(staged.startMs)", session: session, intervalMs: intervalMs,
      endMs: staged.endMs + (staged.holds[staged.holds.count - 1].closingGapMs ?? 0), capture: capture,
      isFinal: isFinal, frames: [], refused: [], warnings: [], metadata: metadata)
    var digest = BatchDigest(of: batch)
    let captures = Set(staged.holds.map(\.capture.timeMs))
    for (timeMs, text) in texts where captures.contains(timeMs) { digest.add(text) }
    // The last frame may continue in the next segment.
    texts.removeAll { $0.timeMs < staged.holds[staged.holds.count - 1].capture.timeMs }
    let manifest = SegmentManifest(
      staged, of: batch, digest: digest.finish(), part: 1, parts: 1, encoder: settings.json)
    return Segment(manifest, of: session, video: segment.encoded.bytes)
  }
}

/// Collects segments, and remembers whether a frame was refused.
private struct Consumer: HoldConsumer, ~Copyable {
  var collector: SegmentCollector
  /// Further refusals of one segment are reported, but not listed in its manifest.
  let maximumRefused: Int
  var refusal: RefusedFrame?
  /// Whether the open segment may be incomplete after an error.
  private(set) var isEncoding = false

  init(collector: consuming SegmentCollector, maximumRefused: Int) {
    self.collector = collector
    self.maximumRefused = maximumRefused
  }

  mutating func refuse(_ frame: RefusedFrame) {
    refusal = frame
    if collector.refused.count < maximumRefused { collector.refuse(frame) }
  }

  mutating func leave(last count: Int) { collector.leave(last: count) }

  mutating func note(_ text: String, on capture: Capture) { collector.note(text, on: capture) }

  mutating func show(
    _ frame: SourceFrame, in holds: [FrameHold], nextDiffers: Bool, _ cancellation: Cancellation
  ) throws {
    isEncoding = true
    try collector.show(frame, in: holds, nextDiffers: nextDiffers, cancellation)
    isEncoding = false
  }
}

/// The segments that have closed and were not returned yet.
private final class ClosedSegments {
  typealias Closed = (encoded: EncodedSegment, refused: [RefusedFrame], notes: [Int64: String])

  private var list: [Closed] = []

  func add(_ encoded: EncodedSegment, refused: [RefusedFrame], notes: [Int64: String]) {
    list.append((encoded, refused, notes))
  }

  func take() -> [Closed] {
    defer { list = [] }
    return list
  }
}

extension FrameEncoderError: ClassifiedError {
  package var kind: Failure.Kind { .input }
}
