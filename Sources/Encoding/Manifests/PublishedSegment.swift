import FileSystem
import FrameBatches
import ISOMedia
import JSON

/// The facts of a segment that stitching, indexing and publishing need, as in its manifest.
package struct PublishedSegment: Sendable, Equatable {
  /// The format of a manifest.
  package static let format = "segment-manifest/1"

  /// A frame's place in the segment.
  package struct Frame: Sendable, Equatable {
    package let timeMs: Int64
    package let holdMs: Int64
    package let isCaptured: Bool
    /// The number of blocks in which its picture differs from the captured one before it in its batch: 0 for a continued frame,
    /// nil if that is unknown.
    package let changedBlocks: Int?

    package init(timeMs: Int64, holdMs: Int64, isCaptured: Bool, changedBlocks: Int? = nil) {
      self.timeMs = timeMs
      self.holdMs = holdMs
      self.isCaptured = isCaptured
      self.changedBlocks = changedBlocks
    }

    /// Whether it has the same instants. Segments of earlier versions tell no changed blocks.
    fileprivate func isShown(like other: Frame) -> Bool {
      (timeMs, holdMs, isCaptured) == (other.timeMs, other.holdMs, other.isCaptured)
    }
  }

  /// The name of the segment's batch.
  package let batch: String
  /// The digest that recognises the batch when it is sent again.
  package let batchDigest: String
  /// The number of the segment in its batch, from 1, and the number of the batch's segments.
  package let part: Int
  package let parts: Int
  package let startMs: Int64
  package let endMs: Int64
  /// The pictures as captured, in pixels.
  package let width: Int
  package let height: Int
  /// The coded size: even sides.
  package let codedWidth: Int
  package let codedHeight: Int
  package let bytes: Int
  package let sha256: String
  /// The number of coded pictures: one a frame, and the repeats that keep players in time.
  package let samples: Int
  package let frames: [Frame]
  package let intervalMs: Int64
  /// The gap up to the batch's next capture or its end.
  package let gapAfterMs: Int64
  /// Whether its recorder captures on change only: a picture without a successor stays on screen.
  package private(set) var capturesChanges = false
  /// Whether the session ends with the segment.
  package let isFinal: Bool
  /// Whether its end is a guess, so that a later batch may cut its last picture short anywhere.
  package private(set) var isEndOpen = false
  /// Nil if the captures of its batch have no interval, or an earlier version has published it.
  package internal(set) var health: SegmentHealth?
  /// The numbers of its labels.
  package internal(set) var labels = LabelCounts()
  /// The encoder settings.
  package private(set) var encoder: JSONValue

  /// The name of the video.
  package var file: String { SegmentName.video(startMs) }

  package var durationMs: Int64 { endMs - startMs }

  /// Whether it shows the same frames for the same times.
  package func isCutLike(_ other: PublishedSegment) -> Bool {
    startMs == other.startMs && endMs == other.endMs && parts == other.parts && frames.count == other.frames.count
      && zip(frames, other.frames).allSatisfy { $0.isShown(like: $1) }
  }

  /// Whether another program has coded it. Then it has that program's key frames.
  package var isImported: Bool { encoder.object?["imported"]?.bool == true }

  /// The length of a full segment with its settings, in milliseconds.
  package var fullMs: Int64 {
    let lengths = Timeline.segmentLengths
    let stated = encoder.object?["segmentMs"]?.integer ?? Timeline.defaultSegmentMs
    return min(max(stated, lengths.lowerBound), lengths.upperBound)
  }

  /// The facts that decide its parameter sets.
  package var pictureKind: String { "\(codedWidth)x\(codedHeight) \(encoder.line)" }

  /// Whether it has the same ``pictureKind``, which takes longer to write than to compare.
  package func hasPictureKind(of other: PublishedSegment) -> Bool {
    codedWidth == other.codedWidth && codedHeight == other.codedHeight && encoder.isWritten(like: other.encoder)
  }

  /// Shares the memory of an equal ``encoder``: sessions have thousands of segments with one.
  package mutating func shareEncoder(of other: PublishedSegment) {
    if encoder.isWritten(like: other.encoder) { encoder = other.encoder }
  }

  /// When the last frame comes on screen.
  package var lastShownMs: Int64 { endMs - (frames.last?.holdMs ?? 0) }

  /// When each frame comes on screen, in milliseconds from the segment's start.
  package var startsOfFrames: [Int64] {
    var now: Int64 = 0
    return frames.map { frame in
      defer { now += frame.holdMs }
      return now
    }
  }
}

extension PublishedSegment {
  /// - Parameter holds: at least one.
  package init(
    of batch: Batch, digest: String, part: Int, parts: Int, holds: [FrameHold], codedWidth: Int, codedHeight: Int,
    bytes: Int, sha256: String, samples: Int, health: SegmentHealth?, labels: LabelCounts, encoder: JSONValue
  ) {
    let (first, last) = (holds[0], holds[holds.count - 1])
    self.init(
      batch: batch.name, batchDigest: digest, part: part, parts: parts, startMs: first.startMs, endMs: last.endMs,
      width: first.capture.width, height: first.capture.height, codedWidth: codedWidth, codedHeight: codedHeight,
      bytes: bytes, sha256: sha256, samples: samples,
      frames: holds.map {
        Frame(
          timeMs: $0.capture.timeMs, holdMs: $0.holdMs, isCaptured: $0.status == .captured,
          changedBlocks: $0.changedBlocks)
      },
      intervalMs: batch.intervalMs, gapAfterMs: last.closingGapMs ?? 0, capturesChanges: batch.capturesChanges,
      isFinal: batch.isFinal && part == parts, isEndOpen: batch.isEndOpen && part == parts, health: health,
      labels: labels, encoder: encoder)
  }

  /// Reads a manifest.
  package init(_ json: JSONValue) throws(JSONError) {
    guard try json.required("format", .string) == Self.format else {
      throw JSONError("format: not \(Self.format)")
    }
    // Bounds far above the values that we write, and far below those whose sums overflow.
    func count(_ key: String, from minimum: Int = 0, upTo maximum: Int = 1 << 42) throws(JSONError) -> Int {
      Int(try json.required(key, in: Int64(minimum)...Int64(maximum)))
    }
    batch = try json.required("batch", .string)
    batchDigest = try json.required("batchDigest", .string)
    part = try count("part", from: 1, upTo: 1 << 20)
    parts = try count("parts", from: 1, upTo: 1 << 20)
    let file = try json.required("file", .string)
    startMs = Int64(try count("startMs"))
    endMs = Int64(try count("endMs"))
    width = try count("width", from: 1, upTo: 1 << 14)
    height = try count("height", from: 1, upTo: 1 << 14)
    codedWidth = try count("codedWidth", from: 1, upTo: 1 << 14)
    codedHeight = try count("codedHeight", from: 1, upTo: 1 << 14)
    bytes = try count("bytes")
    sha256 = try json.required("sha256", .string)
    samples = try count("samples", from: 1, upTo: 1 << 30)
    let blocks = ChangedBlocks.total(width: width, height: height)
    var heldMs: Int64 = 0
    frames = try json.required("frames", .array).map { (frame) throws(JSONError) in
      let holdMs = try frame.required("holdMs", in: 0...MediaTime.maximumSampleMs - heldMs)
      heldMs += holdMs
      let timeMs = try frame.required("timeMs", in: 0...(1 << 42))
      let isCaptured = try frame.required("status", .string) == FrameHold.Status.captured.rawValue
      // A version without the number copies it when it scales the pictures: one that cannot be is unknown.
      let changed = frame.object?[ChangedBlocks.key]?.integer.flatMap {
        (0...Int64(blocks)).contains($0) ? Int($0) : nil
      }
      return Frame(timeMs: timeMs, holdMs: holdMs, isCaptured: isCaptured, changedBlocks: changed)
    }
    intervalMs = Int64(try count("intervalMs"))
    gapAfterMs = Int64(try count("gapAfterMs"))
    capturesChanges = json.object?["capture"]?.string == Batch.Capture.onChange.rawValue
    isFinal = try json.required("final", .bool)
    isEndOpen = json.object?["endIsOpen"]?.bool ?? false
    health = SegmentHealth.of(json)
    labels = LabelCounts(ofManifest: json)
    encoder = json.object?["encoder"] ?? .null
    guard file == SegmentName.video(startMs), (1...MediaTime.maximumSampleMs).contains(endMs - startMs),
      !frames.isEmpty, part <= parts
    else {
      throw JSONError("the segment's name, times and frames do not agree")
    }
  }
}

extension PublishedSegment {
  /// The size of its pictures as captured.
  package var size: PixelSize { PixelSize(width: width, height: height) }
}
