import FileSystem
import FrameBatches
import ISOMedia
import JSON

/// A segment as its manifest describes it for stitching, indexing and publishing.
package struct PublishedSegment: Sendable, Equatable {
  /// The format of the manifests that are read and written.
  package static let format = "segment-manifest/1"

  /// A frame's place in the segment.
  package struct Frame: Sendable, Equatable {
    package let timeMs: Int64
    package let holdMs: Int64
    package let isCaptured: Bool

    package init(timeMs: Int64, holdMs: Int64, isCaptured: Bool) {
      self.timeMs = timeMs
      self.holdMs = holdMs
      self.isCaptured = isCaptured
    }
  }

  /// The name of the batch it came with.
  package let batch: String
  /// The digest that recognises the batch when it comes again.
  package let batchDigest: String
  /// Which of the batch's segments this is, from 1, and how many there are.
  package let part: Int
  package let parts: Int
  package let file: String
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
  /// Coded pictures: one a frame, and the repeats that keep players in time.
  package let samples: Int
  package let frames: [Frame]
  package let intervalMs: Int64
  /// The gap behind it, up to the batch's next capture or its end.
  package let gapAfterMs: Int64
  /// Whether the session ends with it.
  package let isFinal: Bool
  /// The settings it was coded with.
  package let encoder: JSONValue

  package init(
    batch: String, batchDigest: String, part: Int, parts: Int, file: String, startMs: Int64, endMs: Int64, width: Int,
    height: Int, codedWidth: Int, codedHeight: Int, bytes: Int, sha256: String, samples: Int, frames: [Frame],
    intervalMs: Int64, gapAfterMs: Int64, isFinal: Bool, encoder: JSONValue
  ) {
    self.batch = batch
    self.batchDigest = batchDigest
    self.part = part
    self.parts = parts
    self.file = file
    self.startMs = startMs
    self.endMs = endMs
    self.width = width
    self.height = height
    self.codedWidth = codedWidth
    self.codedHeight = codedHeight
    self.bytes = bytes
    self.sha256 = sha256
    self.samples = samples
    self.frames = frames
    self.intervalMs = intervalMs
    self.gapAfterMs = gapAfterMs
    self.isFinal = isFinal
    self.encoder = encoder
  }

  package var durationMs: Int64 { endMs - startMs }

  /// Whether it shows the same frames for the same time.
  package func isCutLike(_ other: PublishedSegment) -> Bool {
    startMs == other.startMs && endMs == other.endMs && parts == other.parts && frames == other.frames
  }

  /// The facts that decide its parameter sets.
  package var pictureKind: String { "\(codedWidth)x\(codedHeight) \(encoder.line)" }

  /// When the last frame comes on screen.
  package var lastShownMs: Int64 { endMs - (frames.last?.holdMs ?? 0) }
}

extension PublishedSegment {
  /// Reads a manifest.
  package init(_ json: JSONValue) throws(JSONError) {
    guard try json.required("format", .string) == Self.format else {
      throw JSONError("format: not \(Self.format)")
    }
    // Bounds far above what we write, and far below what a sum of them could overflow.
    func count(_ key: String, from least: Int = 0, upTo limit: Int = 1 << 42) throws(JSONError) -> Int {
      let value = try json.required(key, .integer)
      guard (Int64(least)...Int64(limit)).contains(value) else { throw JSONError("\(key): out of range") }
      return Int(value)
    }
    batch = try json.required("batch", .string)
    batchDigest = try json.required("batchDigest", .string)
    part = try count("part", from: 1, upTo: 1 << 20)
    parts = try count("parts", from: 1, upTo: 1 << 20)
    file = try json.required("file", .string)
    startMs = Int64(try count("startMs"))
    endMs = Int64(try count("endMs"))
    width = try count("width", from: 1, upTo: 1 << 14)
    height = try count("height", from: 1, upTo: 1 << 14)
    codedWidth = try count("codedWidth", from: 1, upTo: 1 << 14)
    codedHeight = try count("codedHeight", from: 1, upTo: 1 << 14)
    bytes = try count("bytes")
    sha256 = try json.required("sha256", .string)
    samples = try count("samples", from: 1, upTo: 1 << 30)
    var heldMs: Int64 = 0
    frames = try json.required("frames", .array).map { (frame) throws(JSONError) in
      let holdMs = try frame.required("holdMs", .integer)
      guard (0...MediaTime.maximumSampleMs - heldMs).contains(holdMs) else { throw JSONError("holdMs: out of range") }
      heldMs += holdMs
      let timeMs = try frame.required("timeMs", .integer)
      guard (0...(1 << 42)).contains(timeMs) else { throw JSONError("timeMs: out of range") }
      return Frame(
        timeMs: timeMs, holdMs: holdMs,
        isCaptured: try frame.required("status", .string) == FrameHold.Status.captured.rawValue)
    }
    intervalMs = Int64(try count("intervalMs"))
    gapAfterMs = Int64(try count("gapAfterMs"))
    isFinal = try json.required("final", .bool)
    encoder = json.object?["encoder"] ?? .null
    guard file == SegmentName.video(startMs), (1...MediaTime.maximumSampleMs).contains(endMs - startMs),
      !frames.isEmpty, part <= parts
    else {
      throw JSONError("the segment's name, times and frames do not agree")
    }
  }
}

/// The names of a segment's files, made from its start.
package enum SegmentName {
  package static func video(_ startMs: Int64) -> String { "segment-\(digits(startMs)).mp4" }
  /// The beginning of a fragment's name.
  package static func fragment(_ startMs: Int64) -> String { "segment-\(digits(startMs))-" }
  package static func fragment(_ startMs: Int64, digest: String) -> String { "\(fragment(startMs))\(digest).m4s" }
  package static func sprite(_ startMs: Int64, digest: String) -> String { "\(fragment(startMs))\(digest).jpg" }
  package static func manifest(_ startMs: Int64) -> String { "segment-\(digits(startMs)).json" }
  package static func event(_ startMs: Int64) -> String { "segment-\(digits(startMs)).sentry.json" }

  /// The start in a manifest's name; nil for any other file.
  package static func start(ofManifest name: String) -> Int64? { start(of: name, ".json") }

  /// The start in a video's name; nil for any other file.
  package static func start(ofVideo name: String) -> Int64? { start(of: name, ".mp4") }

  /// The start in the name of an event for Sentry; nil for any other file.
  package static func start(ofEvent name: String) -> Int64? { start(of: name, ".sentry.json") }

  private static func start(of name: String, _ suffix: String) -> Int64? {
    guard name.hasPrefix("segment-"), name.hasSuffix(suffix) else { return nil }
    let digits = name.dropFirst(8).dropLast(suffix.count)
    guard digits.utf8.count == 13, digits.utf8.allSatisfy({ $0 >= 48 && $0 <= 57 }) else { return nil }
    return Int64(digits)
  }

  private static func digits(_ startMs: Int64) -> String {
    let text = String(startMs)
    return String(repeating: "0", count: max(0, 13 - text.count)) + text
  }
}
