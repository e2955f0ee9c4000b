import Encoding
import FileSystem
import FrameBatches
import ISOMedia
import JSON

/// The facts of one segment: `segment-<start>.json`. Its presence says that the segment is whole.
package struct SegmentManifest: Sendable, Equatable {
  /// Of a file, in bytes.
  package static let maximumBytes = 8 << 20

  package struct Frame: Sendable, Equatable {
    /// The capture, in unix milliseconds; of a continued frame, the original one.
    package let timeMs: Int64
    /// How long it is shown in this segment.
    package let holdMs: Int64
    package let source: String
    package let status: FrameHold.Status
    /// A change to the picture that a viewer should know of.
    package let note: String?
  }

  /// The facts that other segments and the session need.
  package let segment: PublishedSegment
  package let session: SessionID
  /// The pictures as captured, and as coded, are in ``segment``.
  package let codec: String
  package let frames: [Frame]
  package let refused: [RefusedFrame]
  /// The producer's own.
  package let metadata: JSONValue

  /// A manifest file's text: the manifest, and in it the digest of all else it says.
  package static func text(of json: JSONValue) -> [UInt8] {
    json.setting(["manifestSha256": .string(seal(of: json))]).bytes() + [UInt8(ascii: "\n")]
  }

  /// The digest of a manifest without the member that holds it.
  package static func seal(of json: JSONValue) -> String {
    guard case .object(var members) = json else { return "" }
    members["manifestSha256"] = nil
    return SHA256.hex(of: JSONValue.object(members).bytes())
  }

  package var json: JSONValue {
    .object([
      "format": .string(PublishedSegment.format), "session": .string(session.description),
      "batch": .string(segment.batch),
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
  package var json: JSONValue { .object(["source": .string(source), "reason": .string(reason)]) }
}
