// The time of each segment in a film of its session. Pure.

import Encoding
import ISOMedia

extension SessionIndex.Gap {
  var lengthMs: Int64 { endMs - startMs }
}

/// The handling of gaps.
public enum GapRule: String, Sendable, CaseIterable {
  /// The picture before a gap stays on screen: film time is session time.
  case hold
  /// Gaps are left out.
  case cut
}

struct StitchPlan: Equatable {
  /// One segment in the film.
  struct Part: Equatable {
    let segment: PublishedSegment
    /// From the film's start.
    let startMs: Int64
    /// Up to the next part: the last picture is held longer, or cut short, to close a seam.
    let lengthMs: Int64
    /// The unrecorded part of the length.
    let gapMs: Int64
  }

  let parts: [Part]
  let chapters: [Chapter]

  var durationMs: Int64 { parts.reduce(0) { $0 + $1.lengthMs } }

  /// - Parameter segments: in the order of their starts.
  init(_ segments: [PublishedSegment], gaps: GapRule) {
    var parts: [Part] = []
    var now: Int64 = 0
    var chapters: [Chapter] = []
    for (index, segment) in segments.enumerated() {
      let next = index + 1 < segments.count ? segments[index + 1] : nil
      let gapMs = next.map { segment.gap(before: $0)?.lengthMs ?? 0 } ?? segment.gapAfterMs
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
    // Players start the film at its first chapter.
    self.chapters = chapters.isEmpty ? [] : [Chapter(startMs: 0, title: "start")] + chapters
  }

  private static func text(_ ms: Int64) -> String {
    ms % 1_000 == 0 ? "\(ms / 1_000) s" : "\(ms.secondsText) s"
  }
}
