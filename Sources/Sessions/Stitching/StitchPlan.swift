// Where each segment of a session lies in one film of it. Pure.

import Encoding
import ISOMedia

/// The handling of gaps.
public enum GapRule: String, Sendable, CaseIterable {
  /// The picture before it stays on screen: film time is session time.
  case hold
  /// It is left out.
  case cut
}

package struct StitchPlan: Equatable {
  /// One segment's place.
  package struct Part: Equatable {
    package let segment: PublishedSegment
    /// From the film's start.
    package let startMs: Int64
    /// Until the next part: seams are closed by holding the last picture longer, or cutting it short.
    let lengthMs: Int64
    /// The unrecorded part of it.
    let gapMs: Int64
  }

  package let parts: [Part]
  package let chapters: [Chapter]

  package var durationMs: Int64 { parts.reduce(0) { $0 + $1.lengthMs } }

  /// - Parameter segments: in the order of their starts.
  init(_ segments: [PublishedSegment], gaps: GapRule) {
    var parts: [Part] = []
    var now: Int64 = 0
    var chapters: [Chapter] = []
    for (index, segment) in segments.enumerated() {
      let next = index + 1 < segments.count ? segments[index + 1] : nil
      let gapMs =
        next.map { next in segment.gap(before: next).map { $0.endMs - $0.startMs } ?? 0 } ?? segment.gapAfterMs
      let shownMs = (next?.startMs ?? segment.endMs + gapMs) - segment.startMs - gapMs
      let heldMs = gaps == .hold ? gapMs : 0
      if gapMs > 0 {
        if gaps == .hold { chapters.append(Chapter(startMs: now + shownMs, title: "gap of \(Self.text(gapMs))")) }
        if next != nil {
          chapters.append(Chapter(startMs: now + shownMs + heldMs, title: "after a gap of \(Self.text(gapMs))"))
        }
      }
      parts.append(Part(segment: segment, startMs: now, lengthMs: shownMs + heldMs, gapMs: heldMs))
      now += shownMs + heldMs
    }
    self.parts = parts
    // Players take the first chapter for the film's beginning.
    self.chapters = chapters.isEmpty ? [] : [Chapter(startMs: 0, title: "start")] + chapters
  }

  private static func text(_ ms: Int64) -> String {
    ms % 1_000 == 0 ? "\(ms / 1_000) s" : "\(ms / 1_000).\(String(1_000 + ms % 1_000).dropFirst()) s"
  }
}
