// Puts the pointer events of a batch on its segments. Pure. An event belongs to the segment that contains its instant. Events in gaps
// and outside of the batch's time are dropped, and so are events under a mask. Before a dropped event, and before a line across a mask,
// the pointer is cancelled, at its last position, so that no viewer draws a line to its next position.

import FileSystem
import FrameBatches

package struct PointerPlacement {
  /// The pointer events of each segment; nil for none.
  package private(set) var touches: [SegmentTouches?]
  /// Tells the operator of events at times that no segment has.
  package private(set) var warnings: [String] = []

  /// A place in ``touches``.
  private struct Position {
    let segment: Int
    let event: Int
    /// The position in pixels of the picture.
    let x: Double
    let y: Double
  }

  private let batch: Batch
  private let segments: [[FrameHold]]
  private lazy var areas = HiddenAreas(of: batch, captures: segments.joined().map(\.capture))
  /// The hold of the last event, and its segment.
  private var segment = 0
  private var hold = 0
  /// The last event of each pointer that may go on.
  private var open: [Int32: Position] = [:]
  private var outside = 0

  /// - Parameters:
  ///   - segments: the holds of each segment, in order.
  ///   - cancellation: asked from time to time.
  package init(of batch: Batch, on segments: [[FrameHold]], cancellation: Cancellation) throws(Cancelled) {
    (self.batch, self.segments) = (batch, segments)
    touches = Array(repeating: nil, count: segments.count)
    for (index, event) in batch.pointers.events.enumerated() {
      if index % 1_024 == 0, cancellation.isRequested { throw Cancelled() }
      if !keep(event) { cut(event.pointer) }
    }
    for index in touches.indices { touches[index]?.sort() }
    if outside > 0 {
      warnings = ["\(outside) pointer event\(outside == 1 ? " is" : "s are") left out: no segment has their time"]
    }
  }

  /// - Returns: whether the event belongs to a segment and may be seen.
  private mutating func keep(_ event: PointerEvent) -> Bool {
    guard let shown = hold(at: event.timeMs) else {
      outside += 1
      return false
    }
    let picture = PixelSize(width: shown.capture.width, height: shown.capture.height)
    guard let size = event.space.size(of: picture) else { return false }
    let origin = event.space.origin
    let (width, height) = touches[segment].map { ($0.width, $0.height) } ?? size
    // All coordinates of a segment are in the space of its first event.
    guard let x = PointerEvent.coordinate((event.x - origin.x) * (width / size.width)),
      let y = PointerEvent.coordinate((event.y - origin.y) * (height / size.height))
    else { return false }
    let point = (x: x * Double(picture.width) / width, y: y * Double(picture.height) / height)
    if areas.hide(PointerLine(x: point.x, y: point.y), at: event.timeMs, on: shown.capture) { return false }
    if event.kind != .down, let last = open[event.pointer] {
      let line = PointerLine(from: (last.x, last.y), to: point)
      if areas.hide(line, at: event.timeMs, on: shown.capture) { cut(event.pointer) }
    }
    if touches[segment] == nil { touches[segment] = SegmentTouches(width: width, height: height, events: []) }
    touches[segment]?.events.append(
      SegmentTouches.Event(
        offsetMs: event.timeMs - segments[segment][0].startMs, kind: event.kind, pointer: event.pointer, x: x, y: y))
    let goesOn = event.kind == .down || event.kind == .move
    let index = (touches[segment]?.events.count ?? 1) - 1
    open[event.pointer] = goesOn ? Position(segment: segment, event: index, x: point.x, y: point.y) : nil
    return true
  }

  /// Returns the hold at an instant; nil in gaps. Ask for instants in ascending order.
  private mutating func hold(at timeMs: Int64) -> FrameHold? {
    while segment < segments.count {
      while hold < segments[segment].count {
        let candidate = segments[segment][hold]
        if timeMs < candidate.endMs { return timeMs >= candidate.startMs ? candidate : nil }
        hold += 1
      }
      (segment, hold) = (segment + 1, 0)
    }
    return nil
  }

  /// Cancels a pointer at its last position.
  private mutating func cut(_ pointer: Int32) {
    guard let place = open.removeValue(forKey: pointer), let last = touches[place.segment]?.events[place.event] else {
      return
    }
    touches[place.segment]?.events.append(
      SegmentTouches.Event(offsetMs: last.offsetMs, kind: .cancel, pointer: pointer, x: last.x, y: last.y))
  }
}

extension SegmentTouches {
  /// Sorts events by time. Events of one time keep their order.
  fileprivate mutating func sort() {
    events = events.enumerated().sorted { ($0.element.offsetMs, $0.offset) < ($1.element.offsetMs, $1.offset) }
      .map(\.element)
  }
}
