// Advice on batches that became sessions of their own although their names differ only in a trailing number: s01-0, s01-1, s01-2. They
// may be parts of one recording, and a pattern of their names would join them.

import FileSystem

/// The names of batches that say their sessions, as far as they are remembered.
package struct PartNameAdvice: Sendable {
  /// A batch, by the number at the end of its name.
  private struct Part {
    let path: String
    var sessions: Set<SessionID>
    var startMs: Int64
    var endMs: Int64
    var intervalMs: Int64
  }

  /// The batches that a pattern joins.
  private struct Group {
    let pattern: SessionPattern
    let session: SessionID
    let parts: [Part]
  }

  /// By the name without its trailing number.
  private var groups: [String: [Part]] = [:]
  /// The names without numbers of all parts, the oldest first.
  private var order: [String] = []

  /// Number of batches with one name and several numbers that is no accident.
  package static let least = 3
  /// Maximum number of batches that are remembered.
  private static let most = 1_000
  /// Milliseconds without a capture after which another recording may have begun.
  private static let pauseMs: Int64 = 3_600_000

  package init() {}

  /// Remembers a batch if its name alone says its session.
  ///
  /// - Returns: whether to look at ``text``: enough batches differ from it in the number only. To save work, that is so for the third
  ///   of them, and each time that their number has doubled.
  @discardableResult
  package mutating func add(_ batch: Batch) -> Bool {
    guard let namesake = batch.namesake, let first = batch.frames.first, !lastComponent(of: namesake).contains("@")
    else { return false }
    let path = String(namesake.reversed().drop { $0 == "/" }.reversed())
    let stem = Self.stem(of: path)
    guard stem.utf8.count < path.utf8.count, !Self.endsInDate(path) else { return false }
    var parts = groups[stem] ?? []
    if let index = parts.firstIndex(where: { $0.path == path }) {
      // Another session of the same batch, or the same batch again.
      parts[index].sessions.insert(batch.session)
      parts[index].startMs = min(parts[index].startMs, first.timeMs)
      parts[index].endMs = max(parts[index].endMs, batch.endMs)
    } else {
      parts.append(
        Part(
          path: path, sessions: [batch.session], startMs: first.timeMs, endMs: batch.endMs,
          intervalMs: batch.intervalMs))
      order.append(stem)
    }
    groups[stem] = parts
    if order.count > Self.most { forgetOldest() }
    return parts.count == Self.least || parts.count > Self.least && parts.count.nonzeroBitCount == 1
  }

  private mutating func forgetOldest() {
    let stem = order.removeFirst()
    groups[stem]?.removeFirst()
    if groups[stem]?.isEmpty == true { groups[stem] = nil }
  }

  /// The advice; nil if there is none that holds for the batches.
  package var text: String? {
    let found = groups.values.compactMap(Self.group).sorted {
      ($1.parts.count, $0.session.description) < ($0.parts.count, $1.session.description)
    }
    guard let pattern = found.first?.pattern else { return nil }
    let joined = found.filter { $0.pattern == pattern }
    let batches = joined.reduce(0) { $0 + $1.parts.count }
    let sessions = joined.reduce(into: Set<SessionID>()) { sessions, group in
      for part in group.parts { sessions.formUnion(part.sessions) }
    }
    let names = joined[0].parts.prefix(2).map { Self.shown($0.path, pattern) }.joined(separator: " and ")
    let recordings = joined.count == 1 ? "one recording" : "\(joined.count) recordings"
    return "\(batches) batches whose names differ only in a trailing number are \(sessions.count) sessions; "
      + "if they are parts of \(recordings), join them: with --session-from \(pattern.description.shellQuoted), "
      + "\(names) are one session, \(joined[0].session)"
  }

  /// The end of a path that the pattern describes.
  private static func shown(_ path: String, _ pattern: SessionPattern) -> String {
    path.split(separator: "/").suffix(pattern.folders + 1).joined(separator: "/")
  }

  /// Returns a group that a pattern joins: its parts follow each other in time, and the pattern reads one session in all names.
  private static func group(_ parts: [Part]) -> Group? {
    guard parts.count >= least, let first = parts.first else { return nil }
    let parts = parts.sorted { ($0.startMs, $0.path) < ($1.startMs, $1.path) }
    var (isSequence, run) = (false, 1)
    for (one, next) in zip(parts, parts.dropFirst()) {
      // Captures of two batches at one time would be a conflict. A distance of less than half an interval is a seam.
      guard one.endMs - next.startMs < max(1, one.intervalMs / 2) else { return nil }
      run = next.startMs - one.endMs <= pauseMs ? run + 1 : 1
      isSequence = isSequence || run >= least
    }
    guard isSequence else { return nil }
    for text in patterns(of: first.path) {
      guard let pattern = try? SessionPattern(text),
        let id = pattern.session(in: first.path).flatMap({ SessionID($0) }),
        parts.allSatisfy({ pattern.session(in: $0.path) == id.description })
      else { continue }
      return Group(pattern: pattern, session: id, parts: parts)
    }
    return nil
  }

  // MARK: - Names

  /// Words that stand before the number of a part.
  private static let words = [
    "part", "chunk", "batch", "segment", "seg", "piece", "block", "file", "vol", "pt", "no", "nr", "p", "n",
  ]

  /// Returns the patterns that may join a name with others, the best first.
  private static func patterns(of path: String) -> [String] {
    let name = lastComponent(of: stem(of: path))
    guard path.last != "/", !stem(of: path).hasSuffix("/"), !stem(of: path).isEmpty else {
      // The name is a number alone: the folder may be the session.
      return ["{session}/{part}"]
    }
    let separators = separators(atEndOf: name)
    let beforeSeparators = name.dropLast(separators.count)
    var patterns: [String] = []
    if let word = words.first(where: { beforeSeparators.lowercased().hasSuffix($0) }),
      case let rest = beforeSeparators.dropLast(word.count), case let before = Self.separators(atEndOf: rest),
      !before.isEmpty
    {
      patterns.append("{session}\(before)\(beforeSeparators.suffix(word.count))\(separators){part}")
    }
    return patterns + ["{session}\(separators){part}"]
  }

  private static func separators(atEndOf text: some StringProtocol) -> String {
    String(text.reversed().prefix { "-_. ".contains($0) }.reversed())
  }

  /// Returns a path without its trailing digits.
  private static func stem(of path: String) -> String {
    String(decoding: path.utf8.reversed().drop { (48...57).contains($0) }.reversed(), as: UTF8.self)
  }

  /// Whether a name ends in a day, such as `2026-11-25` or `20261125`. A session a day is what its recorder wants.
  private static func endsInDate(_ path: String) -> Bool {
    let name = lastComponent(of: path)
    let end = name.split(separator: "-").suffix(3).map { $0.utf8.count }
    let isDashed = end.count == 3 && end[1...] == [2, 2] && name.suffix(10).filter(\.isNumber).count == 8
    let digits = name.utf8.reversed().prefix { (48...57).contains($0) }.reversed()
    return isDashed || digits.count == 8 && digits.starts(with: "20".utf8)
  }
}
