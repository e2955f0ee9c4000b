// The rrweb event that tells Sentry of a segment: `segment-<start>.sentry.json`. A view, like session.json, because a
// segment's ordinal is known only until a batch comes that belongs before it. Pure.

import Encoding
import FrameBatches
import JSON

/// A video event of Sentry's replays: all of it stands in the segment's manifest but the ordinal.
struct SentryEvent: Equatable {
  /// Its backend drops videos that are larger, in bytes.
  package static let limit = 10 << 20

  /// The segment's place in its session, from 0.
  let ordinal: Int
  package let startMs: Int64
  package let durationMs: Int64
  package let bytes: Int
  package let width: Int
  package let height: Int
  /// Continued ones included: each is a frame of this video.
  package let frames: Int
  /// A second, at least 1: the format has no less.
  let frameRate: Int64

  init(_ segment: PublishedSegment, ordinal: Int) {
    self.ordinal = ordinal
    startMs = segment.startMs
    durationMs = segment.durationMs
    bytes = segment.bytes
    width = segment.width
    height = segment.height
    frames = segment.frames.count
    let intervalMs = max(1, segment.intervalMs)
    frameRate = max(1, (2_000 + intervalMs) / (2 * intervalMs))
  }

  /// All events of a session, by file name.
  ///
  /// - Parameter segments: all of them, in the order of their starts.
  package static func files(of segments: [PublishedSegment]) -> [(name: String, bytes: [UInt8])] {
    segments.enumerated().map { (SegmentName.event($1.startMs), SentryEvent($1, ordinal: $0).text) }
  }

  /// A warning about a segment; nil if Sentry takes it.
  package static func warning(of segment: PublishedSegment, in session: SessionID) -> String? {
    guard segment.bytes > limit else { return nil }
    return "\(session)/\(segment.file): \(segment.bytes) bytes, and Sentry's backend drops videos of more than "
      + "\(limit >> 20) MiB; choose a lower --quality"
  }

  /// The file's text.
  package var text: [UInt8] { json.bytes() + [UInt8(ascii: "\n")] }

  private var json: JSONValue {
    let payload = JSONValue.object([
      "segmentId": .number(ordinal), "size": .number(bytes), "duration": .number(durationMs),
      "encoding": .string("h264"), "container": .string("mp4"), "height": .number(height), "width": .number(width),
      "frameCount": .number(frames), "frameRateType": .string("variable"), "frameRate": .number(frameRate),
      "left": .number(0), "top": .number(0),
    ])
    // 5 is rrweb's number for an event that is not its own.
    return .object([
      "type": .number(5), "timestamp": .number(startMs),
      "data": .object(["tag": .string("video"), "payload": payload]),
    ])
  }
}
