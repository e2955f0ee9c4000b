import Encoding
import FileSystem
import FrameBatches
import JSON

/// A session that has ended, with the totals that its event has.
package struct EndedSession: Sendable, Equatable {
  package let end: SessionEnd
  package let startMs: Int64
  package let endMs: Int64
  package let segments: Int
  package let frames: Int
  package let bytes: Int
  /// The health as `session.json` has it; nil if it is unknown. Of a long session in a store it is: its pages are not read for it.
  package let health: JSONValue?
  /// The step of a trace that the batch of the last segment has stated.
  package let traceParent: TraceParent?

  init(_ end: SessionEnd, _ index: SessionIndex, traceParent: TraceParent?) {
    (self.end, self.traceParent) = (end, traceParent)
    (startMs, endMs) = (index.startMs, index.endMs)
    (segments, frames, bytes) = (index.count, index.frames, index.bytes)
    health = index.entries.count == index.count ? index.health?.json : nil
  }

  /// - Parameter json: `session.json`.
  /// - Returns: nil if it is not as this program writes it.
  init?(_ end: SessionEnd, _ json: [UInt8], traceParent: TraceParent?) {
    guard let parts = IndexText.parts(of: json, session: end.session),
      let startMs = try? parts.members.count("startMs"), let endMs = try? parts.members.count("endMs"),
      let frames = try? parts.members.count("frames"), let bytes = try? parts.members.count("bytes")
    else { return nil }
    (self.end, self.traceParent) = (end, traceParent)
    (self.startMs, self.endMs) = (startMs, endMs)
    (segments, self.frames, self.bytes) = (parts.segmentCount, Int(frames), Int(bytes))
    health = parts.members.object?[SegmentHealth.key].map { HealthSummary.withoutSums($0) }
  }
}
