// Which frame is on screen at an instant of a session: the timing rules of stitching. Pure.

import Encoding
import FileSystem
import FrameBatches
import JSON
import Sessions

/// A frame on screen at an instant.
package struct ShownFrame: Sendable, Equatable {
  package let segment: PublishedSegment
  /// The frame's index in the segment's list.
  package let index: Int
  /// When the segment shows it, in unix milliseconds. At a seam, the last frame stays until the next segment, or ends there.
  package let shownMs: Range<Int64>

  package var frame: PublishedSegment.Frame { segment.frames[index] }
}

extension ShownFrame {
  /// Finds a frame with the manifests of one segment and its neighbours.
  ///
  /// - Parameters:
  ///   - atMs: the instant, in unix milliseconds.
  ///   - startsMs: the starts of all segments, in order; at least one.
  ///   - segment: reads the manifest of a segment by the index of its start.
  /// - Throws: ``NothingOnScreen``; ``BadSession`` if the segment overlaps another one; an error of `segment`.
  init(
    at atMs: Int64, in session: SessionID, startsMs: [Int64], segment: (Int) throws -> PublishedSegment
  ) throws {
    let after = startsMs.count { $0 <= atMs }
    func outside(_ last: PublishedSegment) -> NothingOnScreen {
      NothingOnScreen(session: session, atMs: atMs, isGap: false, bounds: startsMs[0]..<last.entry.endWithGapMs)
    }
    guard after > 0 else { throw outside(try segment(startsMs.count - 1)) }
    let own = try segment(after - 1)
    // A damaged neighbour hides this frame only if it decides how long the frame is shown.
    let previous = after > 1 ? try? segment(after - 2) : nil
    let next: PublishedSegment?
    do {
      next = after < startsMs.count ? try segment(after) : nil
    } catch  where atMs < own.endMs {
      next = nil
    }
    if let overlap = SessionOrder.overlaps(of: [previous, own, next].compactMap { $0 }).first {
      throw BadSession(overlap.file, overlap.what)
    }
    let gap = next.map { own.gap(before: $0) } ?? own.entry.closingGap
    let nextMs = after < startsMs.count ? startsMs[after] : .max
    let endMs = next.map { gap == nil ? $0.startMs : own.endMs } ?? min(own.endMs, nextMs)
    guard atMs < endMs else {
      guard let gap, atMs < gap.endMs else { throw outside(own) }
      throw NothingOnScreen(session: session, atMs: atMs, isGap: true, bounds: gap.startMs..<gap.endMs)
    }
    let starts = own.startsOfFrames.map { own.startMs + $0 }
    // The first frame starts with the segment. A frame without a hold is never on screen.
    let index = starts.lastIndex { $0 <= atMs } ?? 0
    self.segment = own
    self.index = index
    shownMs = starts[index]..<min(endMs, starts.dropFirst(index + 1).first ?? endMs)
  }
}

/// No picture is on screen at an instant.
package struct NothingOnScreen: ClassifiedError, Equatable {
  package var kind: Failure.Kind { .gone }
  package let session: SessionID
  package let atMs: Int64
  /// Whether the instant is in a gap; otherwise it is outside of the session.
  package let isGap: Bool
  /// Of the gap, or of the session, in unix milliseconds.
  package let bounds: Range<Int64>

  package var description: String {
    let (from, to) = (bounds.lowerBound.instantText(), bounds.upperBound.instantText())
    return "session \(session): no picture at \(atMs.instantText()): "
      + (isGap
        ? "nothing was captured from \(from) to \(to); name an instant before or after this gap"
        : "the session is from \(from) to before \(to); name an instant in it")
  }

  /// The members of a JSON object.
  package var members: [String: JSONValue] {
    [
      "session": .string(session.description), "atMs": .number(atMs),
      isGap ? "gap" : "bounds": SessionIndex.Gap(startMs: bounds.lowerBound, endMs: bounds.upperBound).json,
    ]
  }
}
