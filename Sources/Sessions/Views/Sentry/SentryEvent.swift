// The rrweb event that tells Sentry of a segment: `segment-<start>.sentry.json`. A view, like session.json, because a
// segment's ordinal is known only until a batch comes that belongs before it. Pure.

import Encoding
import FrameBatches
import JSON

/// A video event of Sentry's replays.
struct SentryEvent {
  /// Sentry's backend drops larger videos, in bytes.
  static let limit = 10 << 20

  private let segment: PublishedSegment
  private let ordinal: Int

  /// - Parameter ordinal: the segment's place in its session, from 0.
  init(_ segment: PublishedSegment, ordinal: Int) {
    self.segment = segment
    self.ordinal = ordinal
  }

  /// Returns all events of a session, by file name.
  ///
  /// - Parameters:
  ///   - segments: all of them, in the order of their starts.
  ///   - removed: the number of earlier segments that were removed: the others keep their ordinals.
  static func files(of segments: [PublishedSegment], behind removed: Int) -> [(name: String, bytes: [UInt8])] {
    segments.enumerated().map { (SegmentName.event($1.startMs), SentryEvent($1, ordinal: removed + $0).text) }
  }

  /// Returns a warning about a segment; nil if Sentry takes it.
  static func warning(of segment: PublishedSegment, in session: SessionID) -> String? {
    guard segment.bytes > limit else { return nil }
    return "\(session)/\(segment.file): \(segment.bytes) bytes, and Sentry's backend drops videos of more than "
      + "\(limit >> 20) MiB; choose a lower --quality"
  }

  /// Frames a second, rounded, at least 1: the format has no less.
  var frameRate: Int64 {
    let intervalMs = max(1, segment.intervalMs)
    return max(1, (2_000 + intervalMs) / (2 * intervalMs))
  }

  /// The file's text.
  var text: [UInt8] {
    // Continued frames count: each is a frame of this video.
    let payload = JSONValue.object([
      "segmentId": .number(ordinal), "size": .number(segment.bytes), "duration": .number(segment.durationMs),
      "encoding": .string("h264"), "container": .string("mp4"), "height": .number(segment.height),
      "width": .number(segment.width), "frameCount": .number(segment.frames.count),
      "frameRateType": .string("variable"), "frameRate": .number(frameRate), "left": .number(0), "top": .number(0),
    ])
    // 5 is rrweb's number for an event that is not its own.
    let event = JSONValue.object([
      "type": .number(5), "timestamp": .number(segment.startMs),
      "data": .object(["tag": .string("video"), "payload": payload]),
    ])
    return event.bytes() + [UInt8(ascii: "\n")]
  }
}
