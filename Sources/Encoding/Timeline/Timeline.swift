// When each captured picture is on screen, and where one segment ends and the next begins. Pure: instants in, holds
// out, nothing rounded. Captures are appended one by one: a frame counts only once it is decoded, and its holds are known
// with the next capture.

import FrameBatches

/// A decoded frame, which a hold shows.
package struct Capture: Sendable, Equatable {
  package let source: String
  /// Unix milliseconds.
  package let timeMs: Int64
  /// The picture as captured, in pixels.
  package let width: Int
  package let height: Int
  /// The number of its blocks that differ from the captured picture before it in its batch; nil if that is unknown.
  package let changedBlocks: Int?
  /// The parts of the picture that masks cover.
  package let masks: [PictureRegion]

  package init(
    source: String, timeMs: Int64, width: Int, height: Int, changedBlocks: Int? = nil, masks: [PictureRegion] = []
  ) {
    self.source = source
    self.timeMs = timeMs
    self.width = width
    self.height = height
    self.changedBlocks = changedBlocks
    self.masks = masks
  }
}

/// The hold of one picture within one segment.
package struct FrameHold: Sendable, Equatable {
  package enum Status: String, Sendable {
    /// It starts at its capture.
    case captured
    /// It was captured in an earlier segment and stays on screen.
    case continued
  }

  package let capture: Capture
  package let status: Status
  /// The start of the hold, in unix milliseconds.
  package let startMs: Int64
  /// The duration of the hold in milliseconds, more than zero.
  package let holdMs: Int64
  package let opensSegment: Bool
  /// The gap up to the next capture or the batch's end, in milliseconds, if the hold ends the segment; else nil.
  package let closingGapMs: Int64?

  package init(
    capture: Capture, status: Status, startMs: Int64, holdMs: Int64, opensSegment: Bool, closingGapMs: Int64?
  ) {
    self.capture = capture
    self.status = status
    self.startMs = startMs
    self.holdMs = holdMs
    self.opensSegment = opensSegment
    self.closingGapMs = closingGapMs
  }

  package var endMs: Int64 { startMs + holdMs }

  /// The number of blocks in which its picture differs from the one before it in its batch. A continued picture is the one before.
  package var changedBlocks: Int? { status == .continued ? 0 : capture.changedBlocks }
}

/// The rules of holds, gaps and cuts, applied to one batch.
package struct Timeline: Sendable {
  /// The default length of a full segment, in milliseconds.
  package static let defaultSegmentMs = DefaultLengths.segmentMs
  /// The lengths of a full segment, in milliseconds.
  package static let segmentLengths: ClosedRange<Int64> = 1_000...600_000

  /// The length of a full segment, in milliseconds.
  private let segmentMs: Int64
  private let intervalMs: Int64
  /// The maximum hold; nil if long holds are no gaps.
  private let maxHoldMs: Int64?
  /// The capture on screen, whose hold is not known yet.
  private var pending: Capture?
  /// The start of the open segment.
  private var segmentStart: Int64?
  /// The rule for the segments of a film; nil for segments of one length.
  private let film: FilmCuts?
  private var filmed = FilmCuts.OpenSegment()

  package init(
    intervalMs: Int64, maxHoldMs: Int64?, segmentMs: Int64 = Self.defaultSegmentMs, film: FilmCuts? = nil
  ) {
    self.intervalMs = intervalMs
    self.maxHoldMs = maxHoldMs
    self.segmentMs = film?.longestMs ?? segmentMs
    self.film = film
  }

  /// Appends the next capture, which is later than the one before.
  ///
  /// - Returns: the holds of the previous capture.
  package mutating func append(_ capture: Capture) -> [FrameHold] {
    defer { pending = capture }
    return pending.map { holds(of: $0, untilMs: capture.timeMs, next: capture) } ?? []
  }

  /// Ends the batch.
  ///
  /// - Returns: the holds of the last capture.
  package mutating func finish(endMs: Int64) -> [FrameHold] {
    defer { pending = nil }
    return pending.map { holds(of: $0, untilMs: endMs, next: nil) } ?? []
  }

  private mutating func holds(of capture: Capture, untilMs: Int64, next: Capture?) -> [FrameHold] {
    let shownUntil = maxHoldMs.map { min(untilMs, capture.timeMs + $0) } ?? untilMs
    var result: [FrameHold] = []
    var start = capture.timeMs
    var status = FrameHold.Status.captured
    func append(until end: Int64, opening: Bool, closingGapMs: Int64?) {
      result.append(
        FrameHold(
          capture: capture, status: status, startMs: start, holdMs: end - start, opensSegment: opening,
          closingGapMs: closingGapMs))
    }

    var opened = segmentStart
    // The pieces of a film's hold stay in its segment.
    for cut in cuts(from: start, until: shownUntil, in: film == nil ? opened ?? start : start) {
      append(until: cut, opening: opened == nil, closingGapMs: film == nil ? 0 : nil)
      opened = film == nil ? nil : opened ?? start
      start = cut
      status = .continued
    }

    let gapMs = untilMs - shownUntil
    let segment = opened ?? start
    if film != nil {
      if segment == capture.timeMs { filmed = FilmCuts.OpenSegment() }
      filmed.add(capture, holdMs: shownUntil - capture.timeMs)
    }
    let closes =
      next.map { next in
        gapMs > 0 || (next.width, next.height) != (capture.width, capture.height) || isFull(from: segment, before: next)
      } ?? true
    append(until: shownUntil, opening: opened == nil, closingGapMs: closes ? gapMs : nil)
    segmentStart = closes ? nil : segment
    return result
  }

  /// Whether a segment has no room for the next capture.
  private func isFull(from segment: Int64, before next: Capture) -> Bool {
    film?.end(filmed, before: next, lengthMs: next.timeMs - segment)
      ?? (2 * (next.timeMs - segment - segmentMs) >= -intervalMs)
  }

  /// Returns where a hold is cut, in order; nowhere if its segment can take it.
  ///
  /// Segments of the default length close when they are full. Those of another length get pieces of even length, as few as the
  /// length allows; where the segment has no room for such a piece, the first one fills it.
  ///
  /// - Parameter segment: the start of the segment that the hold begins in.
  private func cuts(from start: Int64, until end: Int64, in segment: Int64) -> [Int64] {
    var cuts: [Int64] = []
    // Twice the distance from the nominal cut, so that half an odd interval stays a whole number.
    func fits(in segment: Int64) -> Bool { 2 * (end - segment - segmentMs) <= intervalMs }
    if segmentMs == Self.defaultSegmentMs {
      var full = segment + segmentMs
      while !fits(in: full - segmentMs) {
        cuts.append(full)
        full += segmentMs
      }
    } else if !fits(in: segment) {
      var (start, full) = (start, segment + segmentMs)
      var pieces = (end - segment - 1) / segmentMs + 1
      while pieces > 1 {
        start = min(full, start + (end - start) / pieces)
        cuts.append(start)
        full = start + segmentMs
        pieces -= 1
      }
    }
    return cuts
  }
}
