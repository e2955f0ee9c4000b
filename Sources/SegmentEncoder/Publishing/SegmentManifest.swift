/// What is known of one published segment: `segment-<start>.json`. Its presence says that the segment is whole.
public struct SegmentManifest: Sendable, Equatable, Codable {
  public static let format = "segment-manifest/1"

  public struct Frame: Sendable, Equatable, Codable {
    /// The capture, in unix milliseconds; of a continued frame, the original one.
    public let timeMs: Int64
    /// How long it is shown in this segment.
    public let holdMs: Int64
    public let source: String
    public let status: Shot.Status
    /// What was done to it that a viewer should know.
    public let note: String?
  }

  public let format: String
  public let session: String
  /// The name of the batch it came with.
  public let batch: String
  /// What makes the batch the same when it comes again.
  public let batchDigest: String
  /// Which of the batch's segments this is, from 1, and how many there are.
  public let part: Int
  public let parts: Int
  public let file: String
  public let startMs: Int64
  public let endMs: Int64
  public let durationMs: Int64
  /// The pictures as captured, in pixels.
  public let width: Int
  public let height: Int
  /// What is coded: even sides.
  public let codedWidth: Int
  public let codedHeight: Int
  public let codec: String
  public let timescale: Int64
  public let bytes: Int
  public let sha256: String
  /// Coded pictures: one a frame, and the repeats that keep players in time.
  public let samples: Int
  public let frames: [Frame]
  public let refused: [RefusedFrame]
  public let intervalMs: Int64
  /// The gap behind this segment, up to the batch's next capture or its end.
  public let gapAfterMs: Int64
  /// Whether the session ends with this segment.
  public let final: Bool
  public let encoder: EncoderSettings
  public let metadata: JSONValue

  /// When the last frame comes on screen.
  var lastShownMs: Int64 { endMs - (frames.last?.holdMs ?? 0) }
}

/// The names of a segment's two files, made from its start.
enum SegmentName {
  static func video(_ startMs: Int64) -> String { "segment-\(digits(startMs)).mp4" }
  static func manifest(_ startMs: Int64) -> String { "segment-\(digits(startMs)).json" }

  /// The start in a manifest's name; nil for any other file.
  static func start(ofManifest name: String) -> Int64? {
    guard name.hasPrefix("segment-"), name.hasSuffix(".json") else { return nil }
    let digits = name.dropFirst(8).dropLast(5)
    guard digits.utf8.count == 13, digits.utf8.allSatisfy({ $0 >= 48 && $0 <= 57 }) else { return nil }
    return Int64(digits)
  }

  private static func digits(_ startMs: Int64) -> String {
    let text = String(startMs)
    return String(repeating: "0", count: max(0, 13 - text.count)) + text
  }
}
