// A film's map as JSON and as a WebVTT metadata track (docs/map.md).

import FileSystem
import FrameBatches
import ISOMedia
import JSON
import Sessions

/// A map with the names of a film's session and of its chapters.
package struct NamedMap: Sendable, Equatable {
  let session: String
  package let map: FilmMap
  let chapters: [FilmChapter]
  /// The instant that counts as 0, for pictures without a clock; nil if instants are unix milliseconds.
  var zeroMs: Int64?

  /// The format of its JSON.
  static let format = "film-map/1"

  package var json: JSONValue {
    var members: [String: JSONValue] = [
      "format": .string(Self.format), "session": .string(session),
      "durationMs": .number(map.durationTicks / MediaTime.ticks(ms: 1)), "speed": .number(map.speed.description),
      "fromMs": counted(map.shown.lowerBound), "toMs": counted(map.shown.upperBound),
      "pieces": .array(map.pieces.map(json)), "chapters": .array(chapters.compactMap(json)),
    ]
    if zeroMs != nil { members["clock"] = .string("unknown") }
    return .object(members)
  }

  private func counted(_ unixMs: Int64) -> JSONValue { .number(unixMs - (zeroMs ?? 0)) }

  private func json(_ piece: FilmMap.Piece) -> JSONValue {
    .object([
      "filmMs": .number(filmText(piece.film.lowerBound)), "filmEndMs": .number(filmText(piece.film.upperBound)),
      "unixMs": counted(piece.unix.lowerBound), "unixEndMs": counted(piece.unix.upperBound),
    ])
  }

  private func json(_ chapter: FilmChapter) -> JSONValue? {
    guard let filmMs = filmMs(chapter) else { return nil }
    var members: [String: JSONValue] = [
      "filmMs": .number(filmMs), "unixMs": counted(chapter.unixMs), "kind": .string(chapter.kind.rawValue),
      "title": .string(chapter.title),
    ]
    members["unixEndMs"] = chapter.unixEndMs.map { counted($0) }
    if zeroMs == nil { members["time"] = .string(chapter.unixMs.dateText) }
    return .object(members)
  }

  /// Returns when a chapter begins in the film, in milliseconds, rounded down.
  private func filmMs(_ chapter: FilmChapter) -> Int64? {
    map.film(ofUnix: chapter.unixMs).map { $0 / MediaTime.ticks(ms: 1) }
  }

  /// Returns a time at normal speed as milliseconds of the film, rounded to six decimals.
  private func filmText(_ normalMs: Int64) -> String {
    let (unit, speed) = (Int128(1_000_000), Int128(map.speed.thousandths))
    let millionths = (Int128(normalMs) * 1_000 * unit + speed / 2) / speed
    let decimals = Int64(clamping: millionths % unit).digits(6)
    let significant = decimals.prefix(6 - decimals.reversed().prefix { $0 == "0" }.count)
    return "\(millionths / unit)" + (significant.isEmpty ? "" : ".\(significant)")
  }

  /// The chapters of an MP4: their titles end with their instants. Of several at one moment of the film, the last one is there.
  var movieChapters: [Chapter] {
    var list: [Chapter] = []
    for chapter in chapters {
      guard let startMs = filmMs(chapter) else { continue }
      if list.last?.startMs == startMs { list.removeLast() }
      list.append(Chapter(startMs: startMs, title: "\(chapter.title), \(instant(chapter.unixMs))"))
    }
    return list
  }

  private func instant(_ unixMs: Int64) -> String {
    zeroMs.map { "+\((unixMs - $0).secondsText)s" } ?? unixMs.dateText
  }
}

// MARK: - WebVTT

extension NamedMap {
  /// The metadata track: a cue for each piece, and one for each chapter up to the next. A cue's text is the JSON of its facts. Cues
  /// have whole milliseconds: times are rounded down.
  package var track: [UInt8] {
    var cues = map.pieces.map { piece in
      (start: cueMs(piece.film.lowerBound), end: cueMs(piece.film.upperBound), facts: json(piece))
    }
    let endMs = map.durationTicks / MediaTime.ticks(ms: 1)
    let starts = chapters.compactMap { filmMs($0) }
    for (chapter, start) in zip(chapters, starts) {
      // Several may be at one moment.
      let next = max(start + 1, starts.first { $0 > start } ?? endMs)
      if let facts = json(chapter) { cues.append((start, next, facts)) }
    }
    let sorted = cues.enumerated().sorted { ($0.element.start, $0.offset) < ($1.element.start, $1.offset) }
    var text = "WEBVTT\n\nNOTE \(Self.format) \(session)\n"
    for (_, cue) in sorted where cue.end > cue.start {
      // An arrow would end the text of a cue.
      let facts = cue.facts.line.replacing(">", with: #"\u003e"#)
      text += "\n\(CueTime.clock(cue.start)) --> \(CueTime.clock(cue.end))\n\(facts)\n"
    }
    return Array(text.utf8)
  }

  private func cueMs(_ normalMs: Int64) -> Int64 {
    map.speed.film(MediaTime.ticks(ms: normalMs)) / MediaTime.ticks(ms: 1)
  }
}
