import Encoding
import FileSystem
import FrameBatches
import ISOMedia
import JSON

/// Events of a session that its film can name.
package struct SessionMarks: Sendable, Equatable {
  /// A press is a chapter if there was none for this time.
  static let quietMs: Int64 = 5_000
  /// Maximum bytes of a chapter's title, without its instant.
  private static let titleBytes = 200

  /// In any order.
  private var pages: [FilmChapter] = []
  /// Where the note of frames begins, changes or ends, and the note of the first frame of each segment; in any order.
  private var notes: [NoteChange] = []
  /// Labels of all kinds, in any order.
  private var allLabels: [Label] = []
  /// The instants of pointer events in unix milliseconds, with the place of those that press; in any order.
  private var pointers: [(unixMs: Int64, place: String?)] = []

  /// A frame whose note is another than that of the frame before.
  private struct NoteChange: Equatable {
    let unixMs: Int64
    /// nil for no note.
    let title: String?
    /// Whether its picture was captured in the segment.
    let isCaptured: Bool
  }

  package init() {}

  package init(of manifest: SegmentManifest) { add(manifest.json, of: manifest.segment) }

  package init(_ all: [SessionMarks]) {
    (pages, notes, pointers) = (all.flatMap(\.pages), all.flatMap(\.notes), all.flatMap(\.pointers))
    allLabels = all.flatMap(\.allLabels)
  }

  package static func == (left: SessionMarks, right: SessionMarks) -> Bool {
    left.pages == right.pages && left.notes == right.notes && left.allLabels == right.allLabels
      && left.pointers.elementsEqual(right.pointers, by: ==)
  }

  /// The instants of pointer events, in order.
  package var pointersMs: [Int64] { pointers.map(\.unixMs).sorted() }

  /// Adds the events of a segment. Those that cannot be read are left out: `verify` reports them.
  ///
  /// - Parameter json: its manifest.
  package mutating func add(_ json: JSONValue, of segment: PublishedSegment) {
    addNotes(of: json.object?["frames"]?.array ?? [], in: segment)
    if let pages = json.object?[SegmentPages.key].flatMap({ try? SegmentPages.read($0, of: segment) }) {
      self.pages += pages.map { FilmChapter(kind: .navigation, unixMs: $0.unixMs, title: Self.title($0.name)) }
    }
    allLabels += SegmentLabels.labels(in: json)
    guard let touches = json.object?["touches"],
      let events = try? SegmentTouches(touches, durationMs: segment.endMs - segment.startMs).events
    else { return }
    for event in events {
      let place = event.kind == .down ? "press at \(Self.number(event.x)), \(Self.number(event.y))" : nil
      pointers.append((segment.startMs + event.offsetMs, place))
    }
  }

  private mutating func addNotes(of frames: [JSONValue], in segment: PublishedSegment) {
    var shown: String?
    for (index, frame) in frames.enumerated() {
      let title = frame.object?["note"]?.string.map(Self.title).flatMap { $0.isEmpty ? nil : $0 }
      if index > 0, title == shown { continue }
      shown = title
      let timeMs = frame.object?["timeMs"]?.integer ?? segment.startMs
      notes.append(
        NoteChange(
          unixMs: min(max(timeMs, segment.startMs), segment.endMs), title: title,
          isCaptured: timeMs >= segment.startMs && timeMs < segment.endMs))
    }
  }

  /// The labels, in the order of their times.
  package var labels: [Label] { allLabels.inOrder }

  /// The labels that are chapters.
  private var labelChapters: [FilmChapter] {
    let kinds = [
      Label.Kind.step: FilmChapter.Kind.step, Label.Kind.mark: .mark, Label.Kind.page: .navigation,
    ]
    return labels.compactMap { label in
      kinds[label.kind].map {
        FilmChapter(
          kind: $0, unixMs: label.timeMs, unixEndMs: label.endMs,
          title: Self.title(label.text.replacing("\n", with: " ")))
      }
    }
  }

  /// Labels, pages and notes. A note that the frame before has, too, is no other chapter.
  var chapters: [FilmChapter] {
    var shown: String?
    return labelChapters + pages
      + orderedNotes.compactMap { note in
        defer { shown = note.title }
        guard let title = note.title, note.isCaptured, title != shown else { return nil }
        return FilmChapter(kind: .note, unixMs: note.unixMs, title: title)
      }
  }

  private var orderedNotes: [NoteChange] {
    notes.enumerated().sorted { ($0.element.unixMs, $0.offset) < ($1.element.unixMs, $1.offset) }.map(\.element)
  }

  /// The note with which the first frame begins, and the note of the last frame.
  var outerNotes: (first: FilmChapter?, last: String?) {
    let ordered = orderedNotes
    let first = ordered.first.flatMap { note in
      note.isCaptured ? note.title.map { FilmChapter(kind: .note, unixMs: note.unixMs, title: $0) } : nil
    }
    return (first, ordered.last?.title)
  }

  /// Returns the chapters of a part of the session, in any order.
  ///
  /// - Parameter isWhole: whether it is all of the session. Then a label before its first picture, or behind its end, is at its first or last
  ///   millisecond.
  package func chapters(of shown: Range<Int64>, isWhole: Bool) -> [FilmChapter] {
    (chapters + presses.chapters).map {
      isWhole && [.step, .mark, .navigation].contains($0.kind) ? $0.moved(into: shown) : $0
    }
    .filter { shown.contains($0.unixMs) }
  }

  /// The presses that no other one comes before within ``quietMs``, in order, and the instant of the last press of all.
  var presses: (chapters: [FilmChapter], lastMs: Int64?) {
    var chapters: [FilmChapter] = []
    var latestMs: Int64?
    for event in pointers.sorted(by: { $0.unixMs < $1.unixMs }) {
      guard let place = event.place else { continue }
      if latestMs.map({ event.unixMs - $0 >= Self.quietMs }) ?? true {
        chapters.append(FilmChapter(kind: .pointer, unixMs: event.unixMs, title: place))
      }
      latestMs = event.unixMs
    }
    return (chapters, latestMs)
  }

  private static func title(_ text: String) -> String { text.oneLine.shortened(to: titleBytes) }

  private static func number(_ value: Double) -> String {
    let text = "\(value)"
    return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
  }
}
