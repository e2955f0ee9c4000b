// The chapters of one segment in a playlist that grows segment by segment. They follow
// from the segment's manifest and from what is listed before it, so that a playlist that was extended equals one that is made anew. Pure.

import Encoding
import FileSystem
import FrameBatches
import JSON

/// Events of a segment that a playlist can name.
package struct SegmentMarks: Sendable, Equatable {
  /// The maximum number of chapters of five seconds of a segment; steps come first, then marks, pages, notes and presses.
  static let maximumChapters = 16

  /// Labels, pages and notes, and presses without one of the segment shortly before, each in order.
  private var chapters: [FilmChapter] = []
  /// The last press of a pointer, in unix milliseconds.
  private(set) var lastPressMs: Int64?
  /// The note with which the first frame begins.
  private var firstNote: FilmChapter?
  /// The note of the last frame.
  private(set) var lastNote: String?

  /// The captions, in the order of their starts. They do not depend on labels of other segments.
  private(set) var captions: [Caption] = []
  /// Maximum number of captions of a segment.
  private static let maximumCaptions = 1_000

  private var maximum = SegmentMarks.maximumChapters

  init() {}

  /// - Parameter manifest: of the segment.
  package init(_ manifest: JSONValue, of segment: PublishedSegment) {
    // An archive has segments of minutes.
    maximum = Self.maximumChapters * max(1, Int(segment.durationMs / 5_000))
    var marks = SessionMarks()
    marks.add(manifest, of: segment)
    let presses = marks.presses
    lastPressMs = presses.lastMs
    (firstNote, lastNote) = marks.outerNotes
    captions = Array(
      Caption.all(marks.labels, in: 0..<1 << 43, isWhole: false, seamMs: segment.endMs).prefix(Self.maximumCaptions))
    // The first note and the first press may be left out.
    let all = marks.chapters
    for kind in [FilmChapter.Kind.step, .mark, .navigation, .note] {
      chapters += all.filter { $0.kind == kind }.prefix(maximum + 1)
    }
    chapters += presses.chapters.prefix(maximum + 1)
  }

  /// Returns the chapters in the order of their instants.
  ///
  /// - Parameters:
  ///   - pressMs: the last press before the segment, in unix milliseconds.
  ///   - note: the note of the last frame before the segment.
  func chapters(afterPressMs pressMs: Int64?, note: String? = nil) -> [FilmChapter] {
    let first = chapters.first { $0.kind == .pointer }
    let isSoon = first.flatMap { first in pressMs.map { first.unixMs - $0 < SessionMarks.quietMs } } ?? false
    // A note that goes on has been named.
    let named = firstNote.flatMap { $0.title == note ? $0 : nil }
    let list = chapters.filter { !(isSoon && $0 == first) && $0 != named }.prefix(maximum)
    return list.enumerated().sorted { ($0.element.unixMs, $0.offset) < ($1.element.unixMs, $1.offset) }.map(\.element)
  }
}

extension SessionDirectory {
  /// Reads the chapters of a published segment.
  func marks(of segment: PublishedSegment) throws -> SegmentMarks {
    SegmentMarks(try manifest(segment.startMs).json, of: segment)
  }
}
