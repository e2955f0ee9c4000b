/// What is known of one segment: `segment-<start>.json`. Its presence says that the segment is whole.
public struct SegmentManifest: Sendable, Equatable {
  public static let format = "segment-manifest/1"
  /// Of a file, in bytes.
  static let mostBytes = 8 << 20

  public struct Frame: Sendable, Equatable {
    /// The capture, in unix milliseconds; of a continued frame, the original one.
    public let timeMs: Int64
    /// How long it is shown in this segment.
    public let holdMs: Int64
    public let source: String
    public let status: Shot.Status
    /// What was done to it that a viewer should know.
    public let note: String?
  }

  /// What other segments and the session need to know.
  public let segment: PublishedSegment
  public let session: SessionID
  /// The pictures as captured, and as coded, are in ``segment``.
  public let codec: String
  public let frames: [Frame]
  public let refused: [RefusedFrame]
  /// The producer's own.
  public let metadata: JSONValue

  /// A manifest file's text: the manifest, and in it the digest of all else it says.
  static func text(of json: JSONValue) -> [UInt8] {
    json.setting(["manifestSha256": .string(seal(of: json))]).bytes() + [UInt8(ascii: "\n")]
  }

  /// The digest of a manifest without the member that holds it.
  static func seal(of json: JSONValue) -> String {
    guard case .object(var members) = json else { return "" }
    members["manifestSha256"] = nil
    return SHA256.hex(of: JSONValue.object(members).bytes())
  }

  var json: JSONValue {
    .object([
      "format": .string(Self.format), "session": .string(session.description), "batch": .string(segment.batch),
      "batchDigest": .string(segment.batchDigest), "part": .number(segment.part), "parts": .number(segment.parts),
      "file": .string(segment.file), "startMs": .number(segment.startMs), "endMs": .number(segment.endMs),
      "durationMs": .number(segment.durationMs), "width": .number(segment.width), "height": .number(segment.height),
      "codedWidth": .number(segment.codedWidth), "codedHeight": .number(segment.codedHeight),
      "codec": .string(codec), "timescale": .number(MediaTime.timescale), "bytes": .number(segment.bytes),
      "sha256": .string(segment.sha256), "samples": .number(segment.samples),
      "frames": .array(frames.map(\.json)), "refused": .array(refused.map(\.json)),
      "intervalMs": .number(segment.intervalMs), "gapAfterMs": .number(segment.gapAfterMs),
      "final": .bool(segment.isFinal), "encoder": segment.encoder, "metadata": metadata,
    ])
  }
}

extension SegmentManifest.Frame {
  fileprivate var json: JSONValue {
    var members: [String: JSONValue] = [
      "timeMs": .number(timeMs), "holdMs": .number(holdMs), "source": .string(source),
      "status": .string(status.rawValue),
    ]
    members["note"] = note.map { .string($0) }
    return .object(members)
  }
}

extension RefusedFrame {
  var json: JSONValue { .object(["source": .string(source), "reason": .string(reason)]) }
}

/// A segment as its manifest describes it to whoever stitches, indexes or publishes beside it.
public struct PublishedSegment: Sendable, Equatable {
  /// A frame's place in the segment.
  struct Frame: Sendable, Equatable {
    let timeMs: Int64
    let holdMs: Int64
    let isCaptured: Bool
  }

  /// The name of the batch it came with.
  let batch: String
  /// What makes the batch the same when it comes again.
  let batchDigest: String
  /// Which of the batch's segments this is, from 1, and how many there are.
  let part: Int
  let parts: Int
  let file: String
  let startMs: Int64
  let endMs: Int64
  /// The pictures as captured, in pixels.
  let width: Int
  let height: Int
  /// What is coded: even sides.
  let codedWidth: Int
  let codedHeight: Int
  let bytes: Int
  let sha256: String
  /// Coded pictures: one a frame, and the repeats that keep players in time.
  let samples: Int
  let frames: [Frame]
  let intervalMs: Int64
  /// The gap behind it, up to the batch's next capture or its end.
  let gapAfterMs: Int64
  /// Whether the session ends with it.
  let isFinal: Bool
  /// The settings it was coded with.
  let encoder: JSONValue

  var durationMs: Int64 { endMs - startMs }

  /// Whether it shows the same frames for the same time.
  func isCutLike(_ other: PublishedSegment) -> Bool {
    startMs == other.startMs && endMs == other.endMs && parts == other.parts && frames == other.frames
  }

  /// What decides its parameter sets.
  var pictureKind: String { "\(codedWidth)x\(codedHeight) \(encoder.line)" }

  /// When the last frame comes on screen.
  var lastShownMs: Int64 { endMs - (frames.last?.holdMs ?? 0) }
}

extension PublishedSegment {
  /// Reads a manifest.
  init(_ json: JSONValue) throws(JSONError) {
    guard try json.required("format", .string) == SegmentManifest.format else {
      throw JSONError("format: not \(SegmentManifest.format)")
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
      guard (0...MediaTime.longestSampleMs - heldMs).contains(holdMs) else { throw JSONError("holdMs: out of range") }
      heldMs += holdMs
      let timeMs = try frame.required("timeMs", .integer)
      guard (0...(1 << 42)).contains(timeMs) else { throw JSONError("timeMs: out of range") }
      return Frame(
        timeMs: timeMs, holdMs: holdMs,
        isCaptured: try frame.required("status", .string) == Shot.Status.captured.rawValue)
    }
    intervalMs = Int64(try count("intervalMs"))
    gapAfterMs = Int64(try count("gapAfterMs"))
    isFinal = try json.required("final", .bool)
    encoder = json.object?["encoder"] ?? .null
    guard file == SegmentName.video(startMs), (1...MediaTime.longestSampleMs).contains(endMs - startMs),
      !frames.isEmpty, part <= parts
    else {
      throw JSONError("the segment's name, times and frames do not agree")
    }
  }
}

/// The names of a segment's files, made from its start.
enum SegmentName {
  static func video(_ startMs: Int64) -> String { "segment-\(digits(startMs)).mp4" }
  /// What a fragment's name begins with.
  static func fragment(_ startMs: Int64) -> String { "segment-\(digits(startMs))-" }
  static func fragment(_ startMs: Int64, digest: String) -> String { "\(fragment(startMs))\(digest).m4s" }
  static func sprite(_ startMs: Int64, digest: String) -> String { "\(fragment(startMs))\(digest).jpg" }
  static func manifest(_ startMs: Int64) -> String { "segment-\(digits(startMs)).json" }
  static func event(_ startMs: Int64) -> String { "segment-\(digits(startMs)).sentry.json" }

  /// The start in a manifest's name; nil for any other file.
  static func start(ofManifest name: String) -> Int64? { start(of: name, ".json") }

  /// The start in a video's name; nil for any other file.
  static func start(ofVideo name: String) -> Int64? { start(of: name, ".mp4") }

  /// The start in the name of an event for Sentry; nil for any other file.
  static func start(ofEvent name: String) -> Int64? { start(of: name, ".sentry.json") }

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
