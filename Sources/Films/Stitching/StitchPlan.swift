// The time of each segment in a film of its session, or of a part of it. Pure.

import Encoding
import ISOMedia
import Sessions

/// The handling of gaps.
public enum GapRule: String, Sendable, CaseIterable {
  /// The picture before a gap stays on screen: film time is session time.
  case hold
  /// Gaps are left out.
  case cut
}

package struct StitchPlan: Equatable {
  /// One segment in the film.
  struct Part: Equatable {
    let segment: PublishedSegment
    /// From the film's start, at normal speed.
    var startMs: Int64
    /// The beginning of the segment that the film leaves out.
    let skippedMs: Int64
    /// Up to the next part: the last picture is held longer, or cut short, to close a seam. It has idle time as the film does.
    var lengthMs: Int64
    /// The unrecorded part of the session's time, at its end.
    var gapMs: Int64
    /// Idle time that the film shortens, in order; see ``Stills``.
    var idle: [IdleTime] = []
    /// How long its first picture is shown before the segment starts, in place of segments that a fast film leaves out.
    var earlyMs: Int64 = 0
    /// Whether a fast film shows its first picture only.
    var isOnlyFirst = false

    /// The part of the session, in unix milliseconds.
    var shown: Range<Int64> { segment.startMs + skippedMs..<segment.startMs + skippedMs + sessionMs }
  }

  let parts: [Part]
  /// The number of captures in the part of the session, and of those that a fast film leaves out.
  let captures: Int
  let leftOut: Int
  /// The number of segments whose idle time stays, because another encoder has coded them.
  private(set) var foreign = 0
  /// The number of captures in idle time that the film shortens. They show the picture before them.
  private(set) var idleCaptures = 0
  /// The instants that the film shows, and their names.
  let map: FilmMap
  let chapters: [FilmChapter]
  /// The labels that it shows as captions.
  let captions: FilmCaptions
  /// The number of gaps in the part of the session that are held or left out.
  let gaps: Int
  /// The instant that counts as 0, for pictures without a clock; nil if instants are unix milliseconds.
  var zeroMs: Int64?
  var keyFrames = KeyFrameRule.standard

  /// The shortest gap of a fast film that is a chapter, in milliseconds of the film.
  private static let shortestChapterMs: Int64 = 1_000

  var speed: FilmSpeed { map.speed }

  /// The part of the session, in unix milliseconds.
  var shown: Range<Int64> { map.shown }

  /// At the film's speed, rounded down.
  var durationMs: Int64 { speed.film(parts.reduce(0) { $0 + $1.lengthMs }) }

  /// A film with all idle time.
  init(
    _ segments: [PublishedSegment], gaps: GapRule, range: Range<Int64>? = nil, speed: FilmSpeed = .normal,
    as form: FilmForm = .mp4, marks: SessionMarks = SessionMarks()
  ) {
    self.init(segments, gaps: gaps, range: range, speed: speed, as: form, idle: nil, marks: marks) { _, _ in false }
  }

  /// - Parameters:
  ///   - segments: in the order of their starts.
  ///   - range: the part of the session to show, in unix milliseconds; nil for all.
  ///   - idle: the handling of idle time; nil to keep it. A fast film keeps it.
  ///   - marks: events that are chapters.
  ///   - haveEqualKeys: asked about segments on both sides of a batch's end, to find idle time.
  init(
    _ segments: [PublishedSegment], gaps: GapRule, range: Range<Int64>? = nil, speed: FilmSpeed = .normal,
    as form: FilmForm = .mp4, idle: IdleRule?, marks: SessionMarks = SessionMarks(), haveEqualKeys: Stills.KeyComparison
  ) rethrows {
    var (parts, chapters) = Self.parts(of: segments, gaps: gaps, range: range, speed: speed)
    self.gaps = Self.gaps(between: segments, in: range)
    let shown = (parts.first?.shown.lowerBound ?? 0)..<(parts.last?.shown.upperBound ?? 0)
    if let idle, !speed.isFast, !parts.isEmpty {
      let stills = try Stills(
        parts, idle, speed, pointersMs: idle.endsAtPointerEvents ? marks.pointersMs : [], haveEqualKeys: haveEqualKeys)
      (parts, foreign, idleCaptures) = (stills.parts, stills.foreign, stills.captures)
    }
    map = FilmMap(parts.flatMap(\.pieces), shown: shown, speed: speed)
    chapters += marks.chapters(of: shown, isWhole: range == nil)
    captions = FilmCaptions(marks.labels, in: shown, isWhole: range == nil)
    self.chapters = FilmChapter.list(chapters, from: shown.lowerBound)
    if speed.isFast, !parts.isEmpty {
      let film = FastFilm(parts, speed, FilmPace(of: form))
      (self.parts, captures, leftOut) = (film.parts, film.captures, film.leftOut)
    } else {
      (self.parts, captures, leftOut) = (parts, 0, 0)
    }
  }

  /// Returns the parts of a film with all idle time, and its gaps as chapters.
  static func parts(
    of segments: [PublishedSegment], gaps: GapRule, range: Range<Int64>?, speed: FilmSpeed
  ) -> (parts: [Part], chapters: [FilmChapter]) {
    var parts: [Part] = []
    var now: Int64 = 0
    var chapters: [FilmChapter] = []
    for (index, segment) in segments.enumerated() {
      let next = index + 1 < segments.count ? segments[index + 1] : nil
      let gapMs = next.map { segment.gap(before: $0)?.lengthMs ?? 0 } ?? segment.gapAfterMs
      let endMs = next?.startMs ?? segment.endMs + gapMs
      let gapStartMs = endMs - gapMs
      let all = segment.startMs..<(gaps == .hold ? endMs : gapStartMs)
      let shown = range.map { all.clamped(to: $0) } ?? all
      if !shown.isEmpty {
        parts.append(
          Part(
            segment: segment, startMs: now, skippedMs: shown.lowerBound - segment.startMs,
            lengthMs: Int64(shown.count), gapMs: max(0, shown.upperBound - max(gapStartMs, shown.lowerBound))))
        now += Int64(shown.count)
      }
      if gapMs > 0, !speed.isFast || speed.film(gapMs) >= Self.shortestChapterMs {
        if gaps == .hold, gapStartMs > shown.lowerBound, gapStartMs < shown.upperBound {
          chapters.append(.gap(SessionIndex.Gap(startMs: gapStartMs, endMs: endMs)))
        }
        if next != nil, !parts.isEmpty, range.map({ $0.contains(endMs) }) ?? true {
          chapters.append(
            FilmChapter(kind: .afterGap, unixMs: endMs, title: "after a gap of \(FilmChapter.length(gapMs))"))
        }
      }
    }
    return (parts, chapters)
  }

  private static func gaps(between segments: [PublishedSegment], in range: Range<Int64>?) -> Int {
    let nexts = segments.dropFirst().map { $0 } as [PublishedSegment?] + [nil]
    return zip(segments, nexts).count { segment, next in
      let gap =
        next.map { segment.gap(before: $0).map { $0.startMs..<$0.endMs } } ?? segment.endMs..<segment.endMs
        + segment.gapAfterMs
      guard let gap, !gap.isEmpty else { return false }
      return range.map { $0.overlaps(gap) } ?? true
    }
  }

  /// Returns the map with the names of the film's session and chapters.
  package func namedMap(of session: String) -> NamedMap {
    NamedMap(session: session, map: map, chapters: chapters, zeroMs: zeroMs)
  }

  /// Returns warnings: captures are left out, or idle time is not.
  ///
  /// - Parameter file: the film.
  func omissions(in file: String) -> [Problem] {
    var notes: [String] = []
    if leftOut > 0 {
      notes.append("\(leftOut) of \(captures) pictures are left out: at speed \(speed), no screen shows them")
    }
    if foreign > 0 {
      notes.append(
        "\(foreign) of \(parts.count) segments keep their idle time: another encoder has coded them"
      )
    }
    return notes.map { Problem(file: file, what: $0) }
  }

  /// An upper bound of the samples that a part needs beside its pictures.
  func mostRepeats(in part: Part, ofPictures count: Int) -> Int {
    let lengthMs = speed.film(part.lengthMs)
    // A picture and a text may be held for longer than a sample. Each piece of a hold has repeats of its own.
    let long = Int(2 * (lengthMs / MediaTime.maximumSampleMs))
    return SegmentSamples.mostRepeats(ofPictures: count + long, lengthMs: lengthMs) + long
  }
}
