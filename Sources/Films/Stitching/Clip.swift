// A part of a session, as a person names it, and what has to be read for it.

import Encoding
import FileSystem
import FrameBatches
import ISOMedia
import Sessions

/// The part of a session that a film shows, its speed, the handling of idle time, and its key frames.
package struct Clip: Sendable, Equatable {
  /// A whole session.
  package static let whole = Clip(from: nil, to: nil)

  let from: SessionInstant?
  let to: SessionInstant?
  package let speed: FilmSpeed
  /// The handling of idle time; nil to keep it.
  package let idle: IdleRule?
  /// Those of an MP4.
  let keyFrames: KeyFrameRule

  /// - Parameters:
  ///   - from: nil for the session's start.
  ///   - to: where the film ends; nil for the session's end.
  package init(
    from: SessionInstant?, to: SessionInstant?, speed: FilmSpeed = .normal, idle: IdleRule? = nil,
    keyFrames: KeyFrameRule = .standard
  ) {
    (self.from, self.to, self.speed, self.idle, self.keyFrames) = (from, to, speed, idle, keyFrames)
  }

  var isWhole: Bool { from == nil && to == nil }

  /// Returns the clip with another handling of idle time.
  func with(idle: IdleRule) -> Clip { Clip(from: from, to: to, speed: speed, idle: idle, keyFrames: keyFrames) }

  /// Returns the part of a session in unix milliseconds, without what lies outside of the session.
  ///
  /// - Parameter bounds: of the session; not empty.
  /// - Throws: ``BadClip`` if nothing of the session is left.
  package func range(in bounds: Range<Int64>, of session: SessionID) throws(BadClip) -> Range<Int64> {
    let fromMs = from?.unixMs(inSessionFrom: bounds.lowerBound) ?? bounds.lowerBound
    let toMs = to?.unixMs(inSessionFrom: bounds.lowerBound) ?? max(fromMs, bounds.upperBound)
    func bad(_ fault: BadClip.Fault) -> BadClip {
      BadClip(session: session, fault: fault, fromMs: fromMs, toMs: toMs, bounds: bounds)
    }
    guard from == nil || to == nil || fromMs < toMs else { throw bad(.empty) }
    guard fromMs < bounds.upperBound, toMs > bounds.lowerBound else { throw bad(.outside) }
    return max(fromMs, bounds.lowerBound)..<min(toMs, bounds.upperBound)
  }

  /// Returns the bounds of the session that shorten the clip.
  ///
  /// - Parameter zeroMs: the instant that counts as 0, for pictures without a clock.
  func notes(in bounds: Range<Int64>, of session: SessionID, zeroMs: Int64?) -> [Problem] {
    let (startMs, endMs) = (bounds.lowerBound, bounds.upperBound)
    var notes: [String] = []
    if let from, from.unixMs(inSessionFrom: startMs) < startMs {
      notes.append("the session begins at \(startMs.instantText(from: zeroMs)); the film begins there")
    }
    if let to, to.unixMs(inSessionFrom: startMs) > endMs {
      notes.append("the session ends at \(endMs.instantText(from: zeroMs)); the film ends there")
    }
    return notes.map { Problem(file: session.description, what: $0) }
  }
}

extension Int64 {
  /// Returns an instant for messages: as a date, and as unix milliseconds for a command. Without a clock, the form for a command.
  package func instantText(from zeroMs: Int64? = nil) -> String {
    zeroMs.map { "+\((self - $0).secondsText)s" } ?? "\(dateText) (\(self))"
  }
}

/// A clip that shows nothing of its session.
package struct BadClip: ClassifiedError, Equatable {
  package var kind: Failure.Kind { fault == .empty ? .usage : .gone }
  package enum Fault {
    /// It does not begin before it ends.
    case empty
    case outside
    /// Nothing was recorded in it, and gaps are left out.
    case gap
  }

  package let session: SessionID
  package let fault: Fault
  let fromMs: Int64
  let toMs: Int64
  /// Of the session.
  let bounds: Range<Int64>
  /// The instant that counts as 0, for pictures without a clock.
  var zeroMs: Int64?

  package init(
    session: SessionID, fault: Fault, fromMs: Int64, toMs: Int64, bounds: Range<Int64>, zeroMs: Int64? = nil
  ) {
    self.session = session
    self.fault = fault
    self.fromMs = fromMs
    self.toMs = toMs
    self.bounds = bounds
    self.zeroMs = zeroMs
  }

  package var description: String {
    func text(_ ms: Int64) -> String { ms.instantText(from: zeroMs) }
    let part = "cut session \(session) from \(text(fromMs)) to \(text(toMs))"
    let whole = "the session is from \(text(bounds.lowerBound)) to \(text(bounds.upperBound))"
    switch fault {
    case .empty: return "\(part): nothing is between; \(whole): name an end after the start"
    case .outside: return "\(part): outside of the session; \(whole): name instants in it"
    case .gap: return "\(part): nothing was recorded there; \(whole): name other instants, or hold gaps"
    }
  }
}

/// The segments that a film of a clip is made of.
package struct ClippedSession {
  /// In the order of their starts. The last one may lie behind the clip: it tells where the one before it ends.
  package let segments: [PublishedSegment]
  /// Of the session, in unix milliseconds.
  package let bounds: Range<Int64>
  /// The part of the session in unix milliseconds.
  package let range: Range<Int64>
  /// Faults that do not prevent the film.
  package let warnings: [Problem]
  /// Events of these segments.
  var marks = SessionMarks()
}

extension ClippedSession {
  /// - Parameters:
  ///   - first: the start of the session's first segment.
  ///   - starts: those of all segments, in order.
  ///   - zeroMs: the instant that counts as 0, for pictures without a clock.
  ///   - isCut: whether the session's first segments were removed.
  ///   - segment: returns the segment with a start. It is asked only for those that the clip needs.
  /// - Throws: ``BadSession`` if two segments overlap; ``BadClip``.
  package init(
    _ clip: Clip, of session: SessionID, first: Int64, last: PublishedSegment, starts: [Int64], zeroMs: Int64? = nil,
    isCut: Bool = false, segment: (Int64) throws -> PublishedSegment
  ) throws {
    let bounds = first..<max(first + 1, last.endMs + last.gapAfterMs)
    let range = try clip.range(in: bounds, of: session)
    let before = max(0, starts.count { $0 <= range.lowerBound } - 1)
    let behind = starts.count { $0 < range.upperBound }
    let segments = try starts[before..<min(behind + 1, starts.count)].map {
      $0 == last.startMs ? last : try segment($0)
    }
    if let overlap = SessionOrder.overlaps(of: segments).first { throw BadSession(overlap.file, overlap.what) }
    self.init(
      segments: segments, bounds: bounds, range: range,
      warnings: clip.notes(in: bounds, of: session, zeroMs: zeroMs)
        + SessionOrder.missingParts(of: segments, isAll: clip.isWhole, isCut: isCut))
  }
}

extension Clip {
  /// Returns the starts of the segments of a session that show the clip.
  ///
  /// - Parameter path: a published session, `OUTPUT/SESSION`.
  /// - Throws: ``BadSession`` if there are none, or if two overlap; ``BadClip``.
  package func segments(of path: String) throws -> Set<Int64> {
    Set(try SessionDirectory(at: path).segments(of: self).segments.map(\.startMs))
  }
}

extension SessionDirectory {
  /// Reads the manifests that a clip needs. Their digests are checked.
  ///
  /// - Parameter progress: called for each manifest; an error that it throws ends the work.
  /// - Throws: ``BadSession`` if there are none, or if two overlap; ``BadClip``.
  package func segments(of clip: Clip, progress: () throws -> Void = {}) throws -> ClippedSession {
    try readingRetained { try publishedSegments(of: clip, progress: progress) }
  }

  private func publishedSegments(of clip: Clip, progress: () throws -> Void) throws -> ClippedSession {
    let starts = try publishedStarts()
    guard let first = starts.first, let last = try starts.last.map(soundManifest) else {
      throw BadSession(path, "no published segment", advice: SessionAdvice.naming(insteadOf: path))
    }
    let isCut = try retention() != nil
    var marks = SessionMarks()
    marks.add(last.json, of: last.segment)
    var part = try ClippedSession(
      clip, of: session, first: first, last: last.segment, starts: starts, isCut: isCut
    ) { start in
      try progress()
      let (segment, json) = try soundManifest(start)
      marks.add(json, of: segment)
      return segment
    }
    part.marks = marks
    return part
  }
}

extension StitchPlan {
  /// - Parameter haveEqualKeys: asked about segments on both sides of a batch's end, to find idle time.
  /// - Throws: ``BadClip`` if it shows nothing, and what `haveEqualKeys` throws.
  package init(
    _ part: ClippedSession, of clip: Clip, gaps: GapRule, as form: FilmForm, in session: SessionID,
    haveEqualKeys: Stills.KeyComparison = { _, _ in false }
  ) throws {
    try self.init(
      part.segments, gaps: gaps, range: clip.isWhole ? nil : part.range, speed: clip.speed, as: form, idle: clip.idle,
      marks: part.marks, haveEqualKeys: haveEqualKeys)
    keyFrames = clip.keyFrames
    guard !parts.isEmpty else {
      throw BadClip(
        session: session, fault: .gap, fromMs: part.range.lowerBound, toMs: part.range.upperBound, bounds: part.bounds)
    }
  }
}
