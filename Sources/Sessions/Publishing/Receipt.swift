import Encoding
import FrameBatches
import JSON

/// The result of publishing a batch.
public struct Receipt: Sendable, Equatable {
  public let batch: String
  public let session: SessionID
  public let startMs: Int64
  public let endMs: Int64
  public let segments: Int
  /// Captured frames.
  public let frames: Int
  /// Frames that equal the one before and were not encoded; of a duplicate, 0.
  public package(set) var unchanged = 0
  /// Of a duplicate, none: the manifests have them. The receipt of a batch's first session also has the sessions that were refused.
  public package(set) var refused: [RefusedFrame]
  public let bytes: Int
  /// Whether all of it had been published before.
  public let duplicate: Bool
  /// Warnings about the files of the batch.
  public package(set) var warnings: [String]

  /// - Parameter segments: all of the batch, in order.
  package init(
    _ segments: [PublishedSegment], of batch: Batch, refused: [RefusedFrame], duplicate: Bool, warnings: [String]
  ) {
    self.batch = batch.name
    session = batch.session
    startMs = segments[0].startMs
    endMs = segments[segments.count - 1].endMs
    self.segments = segments.count
    frames = segments.reduce(0) { $0 + $1.frames.count { $0.isCaptured } }
    self.refused = refused
    bytes = segments.reduce(0) { $0 + $1.bytes }
    self.duplicate = duplicate
    self.warnings = warnings
  }

  /// One line of JSON.
  public var json: String { JSONValue.object(members).line }

  package var members: [String: JSONValue] {
    [
      "batch": .string(batch), "session": .string(session.description), "startMs": .number(startMs),
      "endMs": .number(endMs), "segments": .number(segments), "frames": .number(frames),
      "unchanged": .number(unchanged),
      "refused": .array(refused.map(\.json)), "bytes": .number(bytes), "duplicate": .bool(duplicate),
      "warnings": .array(warnings.map { .string($0) }),
    ]
  }
}
