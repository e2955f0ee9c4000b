// The captures that are missing or late in a batch, from their instants alone: docs/health.md has the definition. Pure, in integers.

import FrameBatches

/// The schedule of a recorder that captures at an interval.
package struct CaptureSchedule {
  /// The fewest captures that tell an interval.
  private static let fewestCaptures = 4
  /// A longer distance is a pause: this many milliseconds, and this many intervals.
  private static let pause: (ms: Int64, intervals: Int64) = (5_000, 5)
  /// The captures in a row that are off by the same, from which on the recorder is taken to have another grid.
  private static let movedCaptures = 3

  /// The interval in milliseconds.
  package let intervalMs: Int64
  /// The figures of each capture.
  package let figures: [HealthFigures]

  /// - Parameter instants: of the captures of a batch in unix milliseconds, in ascending order.
  /// - Returns: nil if they have no interval.
  package init?(_ instants: [Int64]) {
    let distances = zip(instants, instants.dropFirst()).map { $1 - $0 }
    guard instants.count >= Self.fewestCaptures, case let sorted = distances.sorted(),
      case let intervalMs = sorted[(sorted.count - 1) / 2], SegmentHealth.intervals.contains(intervalMs),
      2 * distances.count(where: { 4 * abs($0 - intervalMs) <= intervalMs }) >= distances.count
    else { return nil }
    self.intervalMs = intervalMs
    let grid = Walk(instants, intervalMs, keepsGrid: true)
    let sleeping = Walk(instants, intervalMs, keepsGrid: false)
    figures = (grid.cost <= sleeping.cost ? grid : sleeping).figures
  }

  /// Returns the length of the pause if a distance between two captures is one.
  private static func isPause(_ distanceMs: Int64, _ intervalMs: Int64) -> Bool {
    distanceMs > max(pause.ms, pause.intervals * intervalMs)
  }

  /// Returns the figures of the unrecorded time between two batches.
  ///
  /// - Parameters:
  ///   - gapMs: from the end of the last picture to the next capture.
  ///   - intervalMs: of the captures before it.
  package static func figures(ofGap gapMs: Int64, intervalMs: Int64) -> HealthFigures {
    var figures = HealthFigures()
    // The last capture was an interval before the end of its picture.
    if isPause(gapMs + intervalMs, intervalMs) {
      figures.pauses.add(gapMs + intervalMs, .up)
    } else {
      figures.missing = Int((8 * gapMs + intervalMs) / (8 * intervalMs))
    }
    return figures
  }

  /// The captures, compared with the schedule of one kind of recorder: one that keeps a grid, or one that sleeps for an interval after each
  /// capture.
  private struct Walk {
    /// How badly the captures fit, in milliseconds.
    private(set) var cost: Int64 = 0
    private(set) var figures: [HealthFigures]

    private let intervalMs: Int64
    private let keepsGrid: Bool
    /// By how much each capture is late; negative for early ones.
    private var lateMs: [Int64]
    /// The captures that are missing before each one.
    private var skipped: [Int]
    /// The scheduled instant, and the number, of the last capture that has a slot.
    private var slotMs: Int64
    private var last = 0
    /// By how much the last capture has moved the grid.
    private var movedMs: Int64 = 0
    /// The captures in a row up to the last one that are off by the same.
    private var off = 0

    init(_ instants: [Int64], _ intervalMs: Int64, keepsGrid: Bool) {
      (self.intervalMs, self.keepsGrid, slotMs) = (intervalMs, keepsGrid, instants[0])
      lateMs = Array(repeating: 0, count: instants.count)
      skipped = Array(repeating: 0, count: instants.count)
      figures = Array(repeating: HealthFigures(), count: instants.count)
      for index in instants.indices.dropFirst() {
        let distanceMs = instants[index] - instants[index - 1]
        if CaptureSchedule.isPause(distanceMs, intervalMs) {
          figures[index].pauses.add(distanceMs, .up)
          (slotMs, movedMs, last, off) = (instants[index], 0, index, 0)
        } else {
          place(index, at: instants[index], since: keepsGrid ? slotMs : instants[last])
        }
      }
      for index in instants.indices {
        figures[index].missing = skipped[index]
        if 2 * lateMs[index] > intervalMs { figures[index].late.add(lateMs[index], .up) }
      }
    }

    private mutating func place(_ index: Int, at timeMs: Int64, since startMs: Int64) {
      let elapsedMs = timeMs - startMs
      let slots = elapsedMs < 0 ? 0 : (8 * elapsedMs + intervalMs) / (8 * intervalMs)
      if slots >= 1 {
        skipped[index] = Int(slots) - 1
        lateMs[index] = elapsedMs - slots * intervalMs
        slotMs += slots * intervalMs
      } else if keepsGrid, skipped[last] > 0 {
        // The capture before it belongs to the slot that it skipped, and this one has its slot, from which it was not early.
        slotMs -= movedMs
        let elapsedMs = elapsedMs + movedMs
        let sharedMs = 8 * elapsedMs <= 5 * intervalMs ? elapsedMs : 0
        skipped[last] -= 1
        cost -= Self.misfit(lateMs[last], intervalMs)
        lateMs[last] += intervalMs + sharedMs
        lateMs[index] = elapsedMs - sharedMs
        cost += Self.misfit(lateMs[last], intervalMs)
      } else {
        figures[index].extra = 1
        cost += 2 * intervalMs
        return
      }
      cost += Self.misfit(lateMs[index], intervalMs)
      if keepsGrid { follow(index, at: timeMs) }
      last = index
    }

    /// Moves the grid a little with each capture, since clocks drift, and at once when the recorder has begun another one.
    private mutating func follow(_ index: Int, at timeMs: Int64) {
      movedMs = 0
      if 4 * abs(lateMs[index]) <= intervalMs {
        (movedMs, off) = (lateMs[index] / 2, 0)
        slotMs += movedMs
      } else {
        off = off > 0 && 8 * abs(lateMs[index] - lateMs[last]) <= intervalMs ? off + 1 : 1
        if off >= CaptureSchedule.movedCaptures { (slotMs, off) = (timeMs, 0) }
      }
    }

    /// Jitter is no sign of another kind of recorder.
    private static func misfit(_ lateMs: Int64, _ intervalMs: Int64) -> Int64 {
      4 * abs(lateMs) > intervalMs ? abs(lateMs) : 0
    }
  }
}

extension SegmentHealth {
  /// Returns the health of the segments of a batch; nil for each if the captures have no interval.
  ///
  /// - Parameters:
  ///   - segments: the holds of each, in order.
  ///   - batch: nothing can be missing if its recorder captures on change.
  package static func shares(of segments: [[FrameHold]], in batch: Batch) -> [SegmentHealth?] {
    if batch.capturesChanges { return segments.map { _ in nil } }
    let captures = segments.map { $0.filter { $0.status == .captured }.map(\.capture.timeMs) }
    guard let schedule = CaptureSchedule(Array(captures.joined())) else { return segments.map { _ in nil } }
    let steppedBack = Set(batch.frames.lazy.filter(\.stepsBack).map(\.timeMs))
    var rest = schedule.figures[...]
    return captures.map { instants in
      var sum = HealthFigures()
      for figures in rest.prefix(instants.count) { sum.add(figures) }
      rest = rest.dropFirst(instants.count)
      sum.clockSteps = steppedBack.isEmpty ? 0 : instants.count(where: steppedBack.contains)
      return SegmentHealth(intervalMs: schedule.intervalMs, sum)
    }
  }
}
