import Encoding
import FrameBatches
import JSON

/// The result of publishing a batch.
public struct Receipt: Sendable, Equatable {
  /// The batch's name in the spool or on the command line.
  public let batch: String
  /// The session that the batch belongs to.
  public let session: SessionID
  /// Why nothing of this session was published: it was deleted, or the batch is older than all that it keeps. Then there are no
  /// segments, and a retry does not help. Else nil.
  public let refusal: String?
  /// The start of the first segment, in unix milliseconds; 0 without segments.
  public let startMs: Int64
  /// The end of the last segment, in unix milliseconds; 0 without segments.
  public let endMs: Int64
  /// The number of the batch's segments; 0 after a ``refusal``.
  public let segments: Int
  /// The number of captured frames in the segments.
  public let frames: Int
  /// The number of frames that equal the one before and were not encoded; 0 for a duplicate.
  public package(set) var unchanged = 0
  /// The screen at its end; nil for a duplicate, and if nobody asks for it.
  package var screen: StillScreen?
  /// The refused frames. A duplicate has those of a folder that may grow; the manifests list the others. The receipt of a batch's
  /// first session also lists the refused sessions.
  public package(set) var refused: [RefusedFrame]
  /// The refused sessions of the batch, if nobody has accepted that; in the receipt of its first session.
  package var refusedSessions: [RefusedSession] = []
  /// The size of all segments' videos, in bytes.
  public let bytes: Int
  /// Whether all of it had been published before.
  public let duplicate: Bool
  /// Warnings about the files of the batch.
  public package(set) var warnings: [String]
  /// The number of new labels, of a batch without pictures; else nil.
  package private(set) var labels: Int?
  /// The batch's segments, in order.
  package let published: [PublishedSegment]
  /// The instant of the last captured frame, in unix milliseconds; nil without one.
  package var lastCaptureMs: Int64? { published.last?.frames.last { $0.isCaptured }?.timeMs }

  /// - Parameter segments: all of the batch, in order.
  package init(
    _ segments: [PublishedSegment], of batch: Batch, refused: [RefusedFrame], duplicate: Bool, warnings: [String]
  ) {
    self.batch = batch.name
    session = batch.session
    refusal = nil
    startMs = segments[0].startMs
    endMs = segments[segments.count - 1].endMs
    self.segments = segments.count
    published = segments
    frames = segments.reduce(0) { $0 + $1.frames.count { $0.isCaptured } }
    self.refused = refused
    bytes = segments.reduce(0) { $0 + $1.bytes }
    self.duplicate = duplicate
    self.warnings = warnings
  }

  /// For a batch of a deleted session.
  package init(refusing batch: String, for deleted: SessionDeleted) {
    self.init(refusing: batch, of: deleted.tombstone.session, because: "\(deleted)")
  }

  /// For a batch of which nothing is published.
  package init(refusing batch: String, of session: SessionID, because refusal: String) {
    self.batch = batch
    self.session = session
    self.refusal = refusal
    (startMs, endMs, segments, frames, bytes) = (0, 0, 0, 0, 0)
    (published, refused, warnings) = ([], [], [])
    duplicate = false
  }

  /// For a batch without pictures.
  ///
  /// - Parameters:
  ///   - labels: the number of new ones; 0 if all of them had been published before.
  ///   - segments: those that have them, in order, at least one unless no label is new.
  package init(_ addition: LabelAddition, labels: Int, in segments: [PublishedSegment], warnings: [String]) {
    (batch, session, refusal, self.labels) = (addition.name, addition.session, nil, labels)
    (startMs, endMs) = (segments.first?.startMs ?? 0, segments.last?.endMs ?? 0)
    (self.segments, frames, bytes) = (0, 0, 0)
    (published, refused, self.warnings) = ([], [], warnings)
    duplicate = labels == 0
  }

  /// The health of the recording; nil if it is unknown.
  package var health: HealthSummary? { HealthSummary(ofBatch: published) }

  /// One line of JSON.
  public var json: String { JSONValue.object(members).line }

  package var members: [String: JSONValue] {
    var members: [String: JSONValue] = [
      "batch": .string(batch), "session": .string(session.description), "startMs": .number(startMs),
      "endMs": .number(endMs), "segments": .number(segments), "frames": .number(frames),
      "unchanged": .number(unchanged),
      "refused": .array(refused.map(\.json)), "bytes": .number(bytes), "duplicate": .bool(duplicate),
      "warnings": .array(warnings.map { .string($0) }),
    ]
    members["labels"] = labels.map { .number($0) }
    members[SegmentHealth.key] = health?.json
    if let refusal {
      members["refusal"] = .string(refusal)
      // Nothing is published that they would be the bounds of.
      (members["startMs"], members["endMs"]) = (nil, nil)
    }
    return members
  }
}
