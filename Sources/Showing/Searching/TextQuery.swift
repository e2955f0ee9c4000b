// A search for words: what is asked, and what of a session answers it. Pure.

import Encoding
import FrameBatches
import JSON
import Sessions

/// Words that are searched for: each is the beginning of a word on screen, in any case.
package struct TextQuery: Sendable, Equatable {
  /// Maximum number of words, and bytes of a query.
  package static let (maximumWords, maximumBytes) = (8, 256)

  /// The rule for queries, for a message.
  package static let rule =
    "text, as in ?text=order+number, is 1 to \(maximumWords) words of letters or digits, of at most \(maximumBytes) bytes"

  /// Folded, without the punctuation around them.
  let words: [String]

  /// - Returns: nil if it has no word, or too many.
  package init?(_ text: String) {
    guard text.utf8.count <= Self.maximumBytes else { return nil }
    words = text.split(whereSeparator: \.isWhitespace).map { $0.folded.withoutPunctuation }.filter { !$0.isEmpty }
    guard (1...Self.maximumWords).contains(words.count) else { return nil }
  }

  /// Whether the text of a file can have a word of the query: parsing takes longer than a look at its bytes.
  func mayMatch(_ bytes: [UInt8]) -> Bool {
    let isForeign = bytes.contains { $0 >= 128 }
    return words.contains { word in
      // Other letters have forms that the bytes do not tell, in the query or in the file.
      guard word.utf8.allSatisfy({ $0 < 128 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }) else {
        return true
      }
      return bytes.containsLowercased(Array(word.utf8)) || isForeign
    }
  }

  /// Returns which words of the query a word on screen begins with. Words may be joined, as in an address: `@` begins another one.
  func matches(of text: String) -> [Int] {
    let folded = text.folded
    return words.indices.filter { folded.hasWord(beginningWith: words[$0]) }
  }
}

extension StringProtocol {
  /// The text in one case. In upper case first: that also makes `ß` one with `SS`, the ligature `ﬁ`, which fonts and tesseract write,
  /// with `fi`, and all four forms of i in Turkish one, whose lower case has a dot of its own.
  fileprivate var folded: String {
    let lower = uppercased().lowercased()
    return lower.utf8.contains(0xCC) ? lower.replacing("i\u{307}", with: "i") : lower
  }

  /// The text without what is neither letter nor digit at its ends.
  fileprivate var withoutPunctuation: String {
    func isPlain(_ character: Character) -> Bool { character.isLetter || character.isNumber }
    guard let first = firstIndex(where: isPlain), let last = lastIndex(where: isPlain) else { return "" }
    return String(self[first...last])
  }

  fileprivate func hasWord(beginningWith word: String) -> Bool {
    var isInside = false
    for index in indices {
      if !isInside, self[index...].hasPrefix(word) { return true }
      isInside = self[index].isLetter || self[index].isNumber
    }
    return false
  }
}

extension [UInt8] {
  /// Whether they have some bytes, in ASCII letters of any case.
  fileprivate func containsLowercased(_ word: [UInt8]) -> Bool {
    guard let first = word.first, count >= word.count else { return false }
    func lower(_ byte: UInt8) -> UInt8 { (65...90).contains(byte) ? byte | 32 : byte }
    return (0...count - word.count).contains { start in
      lower(self[start]) == first && word.indices.allSatisfy { lower(self[start + $0]) == word[$0] }
    }
  }
}

/// A word on screen, or a label, that answers a query.
package struct TextResult: Sendable, Equatable {
  package enum Source: Sendable, Equatable {
    /// It is visible from the first of its instants on, with the other words of the query.
    case word(VisibleWord)
    /// It has all words of the query.
    case label(Label)
  }

  package let session: SessionID
  package let source: Source

  /// Maximum bytes of a label's text.
  private static let labelBytes = 200

  package var text: String {
    switch source {
    case .word(let word): word.text
    case .label(let label): label.text.cut(to: Self.labelBytes)
    }
  }

  /// In unix milliseconds.
  package var startMs: Int64 {
    switch source {
    case .word(let word): word.shownMs.lowerBound
    case .label(let label): label.timeMs
    }
  }

  package var untilMs: Int64 {
    switch source {
    case .word(let word): word.shownMs.upperBound
    case .label(let label): label.endMs ?? label.timeMs
    }
  }

  package var json: JSONValue {
    var members: [String: JSONValue] = [
      "session": .string(session.description), "text": .string(text), "instant": .string(startMs.dateText),
      "unixMs": .number(startMs), "untilMs": .number(untilMs), "url": .string("/sessions/\(session)/#t=\(startMs)"),
    ]
    switch source {
    case .word(let word):
      members["confidence"] = .number(word.confidence)
      members["x"] = .number(word.box.x)
      members["y"] = .number(word.box.y)
      members["width"] = .number(word.box.width)
      members["height"] = .number(word.box.height)
    case .label(let label):
      members["kind"] = .string(label.kind)
      members["level"] = label.level.map { .string($0.rawValue) }
    }
    return .object(members)
  }
}

/// The words of one session that match a query. A word that stays at its place from one segment to the next is one word.
struct TextMatches {
  private let query: TextQuery
  /// In the order in which they appear, with the words of the query that they match.
  private var found: [(word: VisibleWord, matches: [Int])] = []
  /// Labels with all words of the query.
  private var labels: [Label] = []
  /// The places in `found` of the words at the end of the last segment.
  private var last: [Int] = []

  init(_ query: TextQuery) { self.query = query }

  /// The number of matching words and labels.
  var count: Int { found.count + labels.count }

  /// Adds the labels of a segment that have all words of the query.
  mutating func add(_ labels: [Label]) {
    self.labels += labels.filter { query.matches(of: $0.text).count == query.words.count }
  }

  /// Adds the next segment.
  mutating func add(_ text: SegmentText) {
    var (before, staying) = (last, [Int]())
    for word in text.words {
      let matches = query.matches(of: word.text)
      if matches.isEmpty { continue }
      var place = found.count
      if word.shownMs.lowerBound == text.startMs,
        let index = before.firstIndex(where: { found[$0].word.isSame(word.text, in: word.box) })
      {
        place = before.remove(at: index)
        let start = found[place].word.shownMs.lowerBound
        found[place].word.shownMs = start..<max(start, word.shownMs.upperBound)
      } else {
        found.append((word, matches))
      }
      if word.shownMs.upperBound == text.endMs { staying.append(place) }
    }
    last = staying
  }

  /// Adds a segment in which no word matches.
  mutating func addNone() { last = [] }

  /// Returns the words at whose appearance all words of the query are visible, and the labels, in the order of their instants.
  func results(in session: SessionID) -> [TextResult] {
    var untilMs = [Int64](repeating: .min, count: query.words.count)
    var results: [TextResult] = []
    for (word, matches) in found.sorted(by: { $0.word.shownMs.lowerBound < $1.word.shownMs.lowerBound }) {
      for index in matches { untilMs[index] = max(untilMs[index], word.shownMs.upperBound) }
      let isVisible = untilMs.indices.map { matches.contains($0) || untilMs[$0] > word.shownMs.lowerBound }
      if !isVisible.contains(false) { results.append(TextResult(session: session, source: .word(word))) }
    }
    results += labels.map { TextResult(session: session, source: .label($0)) }
    return results.enumerated().sorted { ($0.element.startMs, $0.offset) < ($1.element.startMs, $1.offset) }
      .map(\.element)
  }
}
