import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import JSON

/// A frame of a test: its capture, its masks, and whether it can be decoded.
struct PointerShot {
  let timeMs: Int64
  var masks = Masks.none
  var isDecoded = true
  var size = PixelSize(width: 100, height: 200)
}

/// A suite that places pointer events on the segments of frames.
protocol PointerPlacementSuite {}

extension PointerPlacementSuite {
  typealias Shot = PointerShot

  static var start: Int64 { 1_767_859_512_340 }

  static func event(
    _ timeMs: Int64, _ kind: PointerEvent.Kind, _ x: Double, _ y: Double, pointer: Int32 = 0,
    space: PointerSpace = .pixels
  ) -> PointerEvent {
    PointerEvent(timeMs: start + timeMs, kind: kind, pointer: pointer, x: x, y: y, space: space)!
  }

  /// Places events on the segments that the timeline makes of the shots.
  static func place(
    _ events: [PointerEvent], on shots: [Shot], endMs: Int64, blindMs: [Int64] = [], maxHoldMs: Int64 = 5_000
  ) throws -> (touches: [SegmentTouches?], warnings: [String], segments: [[FrameHold]]) {
    var list = PointerEventList()
    for event in events { list.append(event, limit: 100_000) }
    let track = PointerTrack(&list, blindMs: blindMs.map { start + $0 }, limits: Limits())
    #expect(track.events.count == events.count)
    let batch = Batch(
      name: "b", session: SessionID("s")!, intervalMs: 1_000, endMs: start + endMs, capture: .interval, isFinal: false,
      frames: shots.enumerated().map { index, shot in
        Frame(
          source: "\(index)", paths: ["\(index)"], timeMs: start + shot.timeMs,
          look: FrameComposition(content: .image(nil), masks: shot.masks))
      }, refused: [], warnings: [], metadata: .object([:]), pointers: track)
    var timeline = Timeline(intervalMs: batch.intervalMs, maxHoldMs: maxHoldMs)
    var holds: [FrameHold] = []
    for (index, shot) in shots.enumerated() where shot.isDecoded {
      holds += timeline.append(
        Capture(source: "\(index)", timeMs: start + shot.timeMs, width: shot.size.width, height: shot.size.height))
    }
    holds += timeline.finish(endMs: start + endMs)
    var segments: [[FrameHold]] = []
    for hold in holds {
      if hold.opensSegment { segments.append([]) }
      segments[segments.count - 1].append(hold)
    }
    let placement = try PointerPlacement(of: batch, on: segments, cancellation: .never)
    return (placement.touches, placement.warnings, segments)
  }

  static func texts(_ touches: SegmentTouches?) -> [String] {
    (touches?.events ?? []).map { "\($0.offsetMs) \($0.kind) \($0.pointer) \($0.x) \($0.y)" }
  }
}
