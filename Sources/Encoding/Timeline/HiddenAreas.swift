// The parts of the pictures in which no pointer event is kept. Pure. Between two captures the screen may have changed at any time:
// the masks of both hold. Where masks cannot be applied as given, no event is kept.

import FrameBatches

/// The masks of a batch's frames in time.
struct HiddenAreas {
  private struct Moment {
    let timeMs: Int64
    var looks: [FrameComposition] = []
    /// The picture's size in pixels; nil if it is not shown.
    var size: PixelSize?
    var isBlind = false

    var hasMasks: Bool { isBlind || looks.contains(where: \.hidesAnything) }
    /// Whether the pixels of its masks are unknown.
    var hidesAll: Bool { isBlind || size == nil && hasMasks }

    func hides(_ line: PointerLine) -> Bool { hidesAll || looks.contains { $0.hides(line) } }
  }

  private let moments: [Moment]
  /// The index of the last moment before or at the last request, and of the moment on screen.
  private var last = 0
  private var shown = 0

  /// - Parameter captures: those that are shown.
  init(of batch: Batch, captures: [Capture]) {
    var moments: [Int64: Moment] = [:]
    for frame in batch.frames {
      moments[frame.timeMs, default: Moment(timeMs: frame.timeMs)].looks.append(frame.look)
    }
    for timeMs in batch.pointers.blindMs { moments[timeMs, default: Moment(timeMs: timeMs)].isBlind = true }
    for capture in captures {
      moments[capture.timeMs]?.size = PixelSize(width: capture.width, height: capture.height)
    }
    self.moments = moments.values.sorted { $0.timeMs < $1.timeMs }
  }

  /// Whether a part of a line is hidden at an instant. Ask for instants in ascending order.
  ///
  /// - Parameter capture: the picture on screen, captured at the instant or before it.
  mutating func hide(_ line: PointerLine, at timeMs: Int64, on capture: Capture) -> Bool {
    while last + 1 < moments.count, moments[last + 1].timeMs <= timeMs { last += 1 }
    while shown + 1 < moments.count, moments[shown].timeMs < capture.timeMs { shown += 1 }
    guard last < moments.count, shown <= last, moments[shown].timeMs == capture.timeMs,
      let size = moments[shown].size
    else { return true }
    if moments[shown].hides(line) || last > shown && moments[last].hidesAll { return true }
    guard timeMs > moments[last].timeMs, last + 1 < moments.count else { return false }
    let next = moments[last + 1]
    return next.hasMasks && (next.size != size || next.hides(line))
  }
}
