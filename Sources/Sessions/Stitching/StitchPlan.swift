// The time of each segment in a film of its session, or of a part of it. Pure.

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
    /// From the film's start, at normal speed.
    var startMs: Int64
    /// The beginning of the segment that the film leaves out.
    let skippedMs: Int64
    /// Up to the next part: the last picture is held longer, or cut short, to close a seam.
    var lengthMs: Int64
    /// The unrecorded part of the length, at its end.
    var gapMs: Int64
    /// Whether the film shows less of the segment than a film of the whole session.
    let isCut: Bool
    /// How long its first picture is shown before the segment starts, in place of segments that a fast film leaves out.
    var earlyMs: Int64 = 0
    /// Whether a fast film shows its first picture only.
    var isOnlyFirst = false

    /// The part of the session, in unix milliseconds.
    var shown: Range<Int64> { segment.startMs + skippedMs..<segment.startMs + skippedMs + lengthMs }
  }

  let parts: [Part]
  /// The part of the session, in unix milliseconds.
  let shown: Range<Int64>
  /// The number of captures in it, and of those that a fast film leaves out.
  let captures: Int
  let leftOut: Int
  /// At the film's speed.
  let chapters: [Chapter]
  let speed: FilmSpeed
  /// The instant that counts as 0, for pictures without a clock; nil if instants are unix milliseconds.
  var zeroMs: Int64?

  /// The shortest gap of a fast film that is a chapter, in milliseconds of the film.
  private static let shortestChapterMs: Int64 = 1_000

  /// At the film's speed, rounded down.
  var durationMs: Int64 { speed.film(parts.reduce(0) { $0 + $1.lengthMs }) }

  /// - Parameters:
  ///   - segments: in the order of their starts.
  ///   - range: the part of the session to show, in unix milliseconds; nil for all.
  init(
    _ segments: [PublishedSegment], gaps: GapRule, range: Range<Int64>? = nil, speed: FilmSpeed = .normal,
    as form: FilmForm = .mp4
  ) {
    var parts: [Part] = []
    var now: Int64 = 0
    var chapters: [Chapter] = []
    for (index, segment) in segments.enumerated() {
      let next = index + 1 < segments.count ? segments[index + 1] : nil
      let gapMs = next.map { segment.gap(before: $0)?.lengthMs ?? 0 } ?? segment.gapAfterMs
      let endMs = next?.startMs ?? segment.endMs + gapMs
      let gapStartMs = endMs - gapMs
      let all = segment.startMs..<(gaps == .hold ? endMs : gapStartMs)
      let shown = range.map { all.clamped(to: $0) } ?? all
      let atMs = now
      if !shown.isEmpty {
        parts.append(
          Part(
            segment: segment, startMs: now, skippedMs: shown.lowerBound - segment.startMs,
            lengthMs: Int64(shown.count), gapMs: max(0, shown.upperBound - max(gapStartMs, shown.lowerBound)),
            isCut: shown != all))
        now += Int64(shown.count)
      }
      if gapMs > 0, !speed.isFast || speed.film(gapMs) >= Self.shortestChapterMs {
        if gaps == .hold, gapStartMs > shown.lowerBound, gapStartMs < shown.upperBound {
          chapters.append(Chapter(startMs: atMs + gapStartMs - shown.lowerBound, title: "gap of \(Self.text(gapMs))"))
        }
        if next != nil, !parts.isEmpty, range.map({ $0.contains(endMs) }) ?? true {
          chapters.append(Chapter(startMs: now, title: "after a gap of \(Self.text(gapMs))"))
        }
      }
    }
    shown = (parts.first?.shown.lowerBound ?? 0)..<(parts.last?.shown.upperBound ?? 0)
    if speed.isFast, !parts.isEmpty {
      let film = FastFilm(parts, speed, FilmPace(of: form))
      (self.parts, captures, leftOut) = (film.parts, film.captures, film.leftOut)
    } else {
      (self.parts, captures, leftOut) = (parts, 0, 0)
    }
    self.speed = speed
    // Players start the film at its first chapter.
    let start = chapters.isEmpty ? [] : [Chapter(startMs: 0, title: "start")]
    self.chapters = (start + chapters).map { Chapter(startMs: speed.film($0.startMs), title: $0.title) }
  }

  /// Returns a warning if captures are left out.
  ///
  /// - Parameter file: the film.
  func omissions(in file: String) -> [Problem] {
    guard leftOut > 0 else { return [] }
    return [
      Problem(
        file: file,
        what: "\(leftOut) of \(captures) pictures are left out: at speed \(speed), no screen shows them")
    ]
  }

  /// The pictures in whose durations Chromium looks for that of a film's last one.
  private static let recentPictures: Int64 = 32

  /// Returns the cadence that a part needs beside the repeats of its segment.
  func cadence(of part: Part) -> Cadence {
    let own = part.isCut || speed.isSlow || speed.isFast
    guard let last = parts.last, last.isCut else { return own ? .own : .ofSegment }
    let behindMs = last.startMs + last.lengthMs - part.startMs - part.lengthMs
    // A short last picture behind long ones is not shown.
    if speed.film(behindMs) < Self.recentPictures * SampleCadence.dense.sampleMs { return .dense }
    return own ? .own : .ofSegment
  }

  /// The repeats in a part of a film.
  enum Cadence {
    /// Those of the segment.
    case ofSegment
    /// Further ones for the part's own durations.
    case own
    /// As many as a player may ever need.
    case dense
  }

  private static func text(_ ms: Int64) -> String {
    ms % 1_000 == 0 ? "\(ms / 1_000) s" : "\(ms.secondsText) s"
  }
}
