import Encoding
import FileSystem
import ISOMedia
import JSON

/// A place in a film with a name: something happened there.
package struct FilmChapter: Sendable, Equatable {
  /// The kinds, the most important first, with their names in maps.
  package enum Kind: String, Sendable, CaseIterable {
    case start, gap
    case afterGap = "after-gap"
    case step, mark, navigation, note, pointer
  }

  package let kind: Kind
  /// In unix milliseconds.
  package private(set) var unixMs: Int64
  /// The end of a gap or of a label's span, in unix milliseconds.
  package var unixEndMs: Int64?
  package let title: String

  package init(kind: Kind, unixMs: Int64, unixEndMs: Int64? = nil, title: String) {
    self.kind = kind
    self.unixMs = unixMs
    self.unixEndMs = unixEndMs
    self.title = title
  }

  /// An MP4 has no more.
  private static let most = 255

  /// Returns the chapter at the nearest instant of a range.
  func moved(into range: Range<Int64>) -> FilmChapter {
    guard !range.isEmpty, !range.contains(unixMs) else { return self }
    var chapter = self
    chapter.unixMs = unixMs < range.lowerBound ? range.lowerBound : range.upperBound - 1
    chapter.unixEndMs = nil
    return chapter
  }

  /// Returns the chapter of a gap that the film holds.
  package static func gap(_ gap: SessionIndex.Gap) -> FilmChapter {
    FilmChapter(kind: .gap, unixMs: gap.startMs, unixEndMs: gap.endMs, title: "gap of \(length(gap.lengthMs))")
  }

  /// Returns the text of a time.
  package static func length(_ ms: Int64) -> String { ms % 1_000 == 0 ? "\(ms / 1_000) s" : "\(ms.secondsText) s" }

  /// Returns chapters in their order, at most ``most``: all of a kind, or none, and the most important kinds first.
  ///
  /// - Parameter start: of the film, where players begin.
  package static func list(_ chapters: [FilmChapter], from start: Int64) -> [FilmChapter] {
    guard !chapters.isEmpty else { return [] }
    var list = [FilmChapter(kind: .start, unixMs: start, title: "start")]
    for kind in [[Kind.gap, .afterGap], [.step, .mark], [.navigation], [.note], [.pointer]] {
      let further = chapters.filter { kind.contains($0.kind) }
      if list.count + further.count <= most {
        list += further
      } else if kind.contains(.gap) {
        // Gaps are there in any case.
        list += further.prefix(most - list.count)
      }
    }
    let places = list.enumerated().sorted { ($0.element.unixMs, $0.offset) < ($1.element.unixMs, $1.offset) }
    return places.map(\.element)
  }
}
