// The map of a session's HLS playlist: the time of its player, and the same facts as tags of the playlist.

import Encoding
import FrameBatches
import ISOMedia
import Sessions

extension FilmMap {
  /// The map of the playlist of a finished session. A player skips a gap of more than an hour, and counts the time of others.
  init(ofPlaylistOf segments: [PublishedSegment]) {
    let parts = HLSSegment.all(segments)
    var pieces: [Piece] = []
    var (now, endMs): (Int64, Int64) = (0, parts.first?.segment.startMs ?? 0)
    for (part, next) in zip(parts, parts.dropFirst().map { Optional($0) } + [nil]) {
      let startMs = part.segment.startMs
      endMs = startMs + part.lengthMs
      if let next, next.segment.startMs - endMs <= HLSPlaylist.maximumGapMs { endMs = next.segment.startMs }
      pieces.append(Piece(film: now..<now + endMs - startMs, unix: startMs..<endMs))
      now += endMs - startMs
    }
    self.init(pieces, shown: (parts.first?.segment.startMs ?? 0)..<endMs, speed: .normal)
  }
}

extension NamedMap {
  /// The map of the playlist of a finished session.
  init(ofPlaylistOf session: ClippedSession, _ name: SessionID) {
    let map = FilmMap(ofPlaylistOf: session.segments)
    let gaps = StitchPlan.parts(of: session.segments, gaps: .hold, range: nil, speed: .normal).chapters
    let chapters =
      gaps.filter { map.shown.contains($0.unixMs) } + session.marks.chapters(of: map.shown, isWhole: true)
    self.init(
      session: name.description, map: map, chapters: FilmChapter.list(chapters, from: map.shown.lowerBound))
  }

  /// The chapters as tags of a playlist. Instants are also in `EXT-X-PROGRAM-DATE-TIME`.
  var dateRanges: String { chapters.dateRanges() }
}
