// Searches the words and labels of all sessions, the newest session first, within bounds: an answer says what was not searched.

import Encoding
import FileSystem
import FrameBatches
import ISOMedia
import JSON
import Sessions

/// The answer to a search.
package struct TextAnswer: Sendable, Equatable {
  package internal(set) var results: [TextResult] = []
  /// Sessions and segments that were searched.
  package internal(set) var sessions = 0
  package internal(set) var segments = 0
  /// Sessions in which segments have no words, or words that cannot be read.
  package internal(set) var incomplete = 0
  /// Sessions that were not searched, or not to their end: a bound was reached.
  package internal(set) var notSearched = 0
  /// Whether there are results that are left out.
  package internal(set) var hasMore = false

  package func json(for query: String) -> JSONValue {
    .object([
      "format": .string("text-search/1"), "query": .string(query), "results": .array(results.map(\.json)),
      "sessions": .number(sessions), "segments": .number(segments), "sessionsWithoutAllText": .number(incomplete),
      "sessionsNotSearched": .number(notSearched), "more": .bool(hasMore),
      "complete": .bool(notSearched == 0 && !hasMore),
    ])
  }
}

package struct TextSearch {
  /// Bounds of one search.
  package struct Bounds: Sendable {
    package var segments = 20_000
    package var bytes = 64 << 20
    package var results = 200
    package var sessions = 20_000

    package init() {}
  }

  private let query: TextQuery
  private let bounds: Bounds
  /// Called for each segment; an error that it throws ends the search.
  private let progress: () throws -> Void
  private var bytes = 0
  /// Segments that were looked at: a segment without words may have labels.
  private var looked = 0
  private var answer = TextAnswer()

  package init(_ query: TextQuery, _ bounds: Bounds = Bounds(), progress: @escaping () throws -> Void) {
    (self.query, self.bounds, self.progress) = (query, bounds, progress)
  }

  /// Searches sessions in this order.
  ///
  /// - Parameter open: opens a session; nil if it is not searched.
  package static func answer<Session>(
    to query: TextQuery, in sessions: [Session], _ bounds: Bounds = Bounds(),
    progress: @escaping () throws -> Void = {}, opening open: (Session) throws -> SessionDirectory?
  ) throws -> TextAnswer {
    var search = TextSearch(query, bounds, progress: progress)
    for (index, session) in sessions.enumerated() {
      try progress()
      guard !search.isAtBound, search.answer.sessions < bounds.sessions else {
        search.answer.notSearched += sessions.count - index
        break
      }
      if let directory = try open(session) {
        try search.search(directory)
      } else {
        search.answer.notSearched += 1
      }
    }
    return search.answer
  }

  private var isAtBound: Bool {
    looked >= bounds.segments || bytes >= bounds.bytes || answer.results.count >= bounds.results
  }

  private mutating func search(_ directory: SessionDirectory) throws {
    guard let (starts, known, labelled) = try? directory.searchableStarts() else {
      answer.incomplete += 1
      return
    }
    answer.sessions += 1
    var matches = TextMatches(query)
    var isWhole = true
    for startMs in starts {
      if looked >= bounds.segments || bytes >= bounds.bytes || matches.count >= 16 * bounds.results {
        answer.notSearched += 1
        break
      }
      try progress()
      looked += 1
      let labels = labels(of: startMs, hasLater: labelled.contains(startMs), in: directory)
      if let labels { matches.add(labels) }
      guard known.contains(startMs) else {
        matches.addNone()
        isWhole = false
        if labels != nil { answer.segments += 1 }
        continue
      }
      answer.segments += 1
      let file = try? directory.bytes(of: SegmentName.text(startMs), limit: SegmentText.maximumBytes)
      bytes += file?.count ?? 0
      if let file, !query.mayMatch(file) {
        matches.addNone()
        if !SegmentText.isWhole(file) { isWhole = false }
      } else if let file, let text = try? SegmentText(file), directory.isCurrent(text, at: startMs) {
        matches.add(text)
        if text.leftOut > 0 || !text.unreadMs.isEmpty { isWhole = false }
      } else {
        matches.addNone()
        isWhole = false
      }
    }
    if !isWhole { answer.incomplete += 1 }
    let found = matches.results(in: directory.session)
    let room = bounds.results - answer.results.count
    answer.hasMore = answer.hasMore || found.count > room
    answer.results += found.prefix(room)
  }
}

extension TextSearch {
  private static let labelsMark = "\"\(SegmentLabels.key)\":["

  /// Returns the labels of a segment that may have words of the query; nil if it has none at all. Those that cannot be read are left out:
  /// `verify` reports them.
  ///
  /// - Parameter hasLater: whether there are labels that came after their pictures.
  private mutating func labels(of startMs: Int64, hasLater: Bool, in directory: SessionDirectory) -> [Label]? {
    var files = [(SegmentName.manifest(startMs), SegmentManifest.maximumBytes)]
    if hasLater { files.append((SegmentName.labels(startMs), AddedLabels.maximumBytes)) }
    var labels: [Label]?
    for (name, limit) in files {
      guard let file = try? directory.bytes(of: name, limit: limit) else { continue }
      bytes += file.count
      guard file.withUnsafeBytes({ !$0.offsets(behind: Self.labelsMark).isEmpty }) else { continue }
      labels = labels ?? []
      if query.mayMatch(file), let json = try? JSONParser.parse(file) { labels? += SegmentLabels.labels(in: json) }
    }
    return labels?.inOrder
  }
}

extension SessionDirectory {
  /// Returns the starts of the published segments, in order, of those with words, and of those with labels that came later.
  fileprivate func searchableStarts() throws -> (starts: [Int64], known: Set<Int64>, labelled: Set<Int64>) {
    (try publishedStarts(), Set(try textStarts()), try labelledStarts())
  }

  /// Whether words are those of a segment, which may have been published anew since they were read.
  fileprivate func isCurrent(_ text: SegmentText, at startMs: Int64) -> Bool {
    guard text.session == session, text.startMs == startMs, let segment = try? segment(startMs) else { return false }
    return text.isText(of: segment)
  }
}

extension SessionCatalog {
  /// Searches the words of all sessions, the newest first. Nothing of it is kept. Of a store it searches the sessions that were opened,
  /// and opens a few of the others.
  ///
  /// - Parameter progress: called for each segment; an error that it throws ends the search.
  package func textAnswer(
    to query: TextQuery, _ bounds: TextSearch.Bounds = TextSearch.Bounds(), progress: @escaping () throws -> Void
  ) throws -> TextAnswer {
    guard let stored else {
      let sessions = try sessions().map(\.session).filter { try tombstone(of: $0) == nil }
      return try TextSearch.answer(to: query, in: sessions, bounds, progress: progress) {
        SessionDirectory(output: output, session: $0)
      }
    }
    var left = Self.searchedAnew
    return try TextSearch.answer(to: query, in: sessions(), bounds, progress: progress) { summary in
      let session = summary.session
      var copy = stored.knownCopy(of: session)
      if copy == nil, left > 0, summary.error == nil, summary.segments <= Self.searchedSegments {
        left -= 1
        do {
          copy = try stored.copy(of: session, progress: progress)
        } catch is SessionDeleted {
          // The list learns it with the next round.
        } catch is BadSession {
          // Searches of directories leave out what cannot be read, too.
        }
      }
      return copy.map { SessionDirectory(output: $0.output, session: session, videos: $0) }
    }
  }

  /// The sessions of a store that a search copies, and the segments that each has at most.
  private static let (searchedAnew, searchedSegments) = (8, 720)
}
