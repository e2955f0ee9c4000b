// The sessions of an output as they were last seen: in the order of the list, with totals, and with what has changed since. Pure.

import FileSystem
import FrameBatches

/// Where a session stands in the list: the newest first, those that cannot be read before all others.
package struct ListPlace: Sendable, Equatable {
  /// Nil for a session that cannot be read.
  let startMs: Int64?
  let session: SessionID

  init(_ summary: SessionSummary) { (startMs, session) = (summary.startMs, summary.session) }

  /// Reads a place as ``text`` writes it.
  package init?(_ text: String) {
    let parts = text.split(separator: ",", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, let session = SessionID(String(parts[1])) else { return nil }
    self.session = session
    startMs = Int64(parts[0])
    guard (startMs.map { "\($0)" } ?? "") == parts[0] else { return nil }
  }

  /// Its text, for the address of the next page.
  package var text: String { "\(startMs.map { "\($0)" } ?? ""),\(session)" }

  func isBefore(_ other: ListPlace) -> Bool {
    (startMs ?? .max, session.description) > (other.startMs ?? .max, other.session.description)
  }
}

struct ListedSessions: Sendable {
  struct Entry: Sendable {
    /// Of the index that the summary is of; nil if the disk failed: read it again.
    var stamp: FileStamp?
    let summary: SessionSummary
    /// The summary as JSON.
    let json: [UInt8]
    /// The number of the change that made it so.
    let revision: Int
  }

  /// A session that was checked: nil if it is not there any more.
  typealias Seen = (session: SessionID, now: (stamp: FileStamp?, summary: SessionSummary)?)

  /// Facts of the whole list.
  struct Totals: Sendable {
    let sessions, frames, bytes: Int
    /// The number of the last change.
    let revision: Int
  }

  private(set) var entries: [SessionID: Entry] = [:]
  private var frames = 0
  private var bytes = 0
  private var revision = 0
  private var order: [ListPlace] = []
  private var changes: [(revision: Int, session: SessionID)] = []
  /// The number of the last change that is not known any more.
  private var forgotten = 0

  /// Above this number of changes at once, the list is sorted anew.
  private static let fewChanges = 32
  /// Changes that are kept beyond two for each session.
  private static let keptChanges = 10_000

  mutating func apply(_ seen: [Seen]) {
    let sortsAnew = seen.count > Self.fewChanges
    for (session, now) in seen {
      let old = entries[session]
      if let now, let old, old.summary == now.summary {
        entries[session]?.stamp = now.stamp
        continue
      }
      guard old != nil || now != nil else { continue }
      revision += 1
      changes.append((revision, session))
      frames += (now?.summary.frames ?? 0) - (old?.summary.frames ?? 0)
      bytes += (now?.summary.bytes ?? 0) - (old?.summary.bytes ?? 0)
      entries[session] = now.map {
        Entry(stamp: $0.stamp, summary: $0.summary, json: $0.summary.json.bytes(), revision: revision)
      }
      if !sortsAnew { move(old.map { ListPlace($0.summary) }, to: now.map { ListPlace($0.summary) }) }
    }
    if sortsAnew { order = entries.values.map { ListPlace($0.summary) }.sorted { $0.isBefore($1) } }
    forgetOldChanges()
  }

  private mutating func move(_ old: ListPlace?, to new: ListPlace?) {
    guard old != new else { return }
    if let old {
      let index = index(behind: old) - 1
      if index >= 0, order[index] == old { order.remove(at: index) }
    }
    if let new { order.insert(new, at: index(behind: new)) }
  }

  /// Returns the number of sessions up to a place, that one included.
  private func index(behind place: ListPlace) -> Int {
    var (low, high) = (0, order.count)
    while low < high {
      let middle = (low + high) / 2
      if place.isBefore(order[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }

  private mutating func forgetOldChanges() {
    let most = 2 * entries.count + Self.keptChanges
    guard changes.count > most else { return }
    let removed = changes.count - most / 2
    forgotten = changes[removed - 1].revision
    changes.removeFirst(removed)
  }

  // MARK: - Parts of the list

  var totals: Totals { Totals(sessions: entries.count, frames: frames, bytes: bytes, revision: revision) }

  /// All sessions, in the order of the list.
  var sorted: [Entry] { order.compactMap { entries[$0.session] } }

  /// Returns the sessions behind a place, in the order of the list, and the place of the last one if more follow.
  ///
  /// - Parameter place: nil for the beginning.
  func page(behind place: ListPlace?, limit: Int) -> (entries: [Entry], next: ListPlace?) {
    let first = place.map { index(behind: $0) } ?? 0
    let end = min(order.count, first + limit)
    return (order[first..<end].compactMap { entries[$0.session] }, end < order.count && end > 0 ? order[end - 1] : nil)
  }

  /// The sessions that have changed, those that were removed, and the number of the last change that this tells.
  struct Changes: Sendable {
    var entries: [Entry] = []
    var removed: [SessionID] = []
    var revision: Int
  }

  /// Returns the first changes behind a revision; nil if they are not all known.
  func changes(since old: Int, limit: Int) -> Changes? {
    guard (forgotten...revision).contains(old) else { return nil }
    var (low, high) = (0, changes.count)
    while low < high {
      let middle = (low + high) / 2
      if changes[middle].revision <= old { low = middle + 1 } else { high = middle }
    }
    var found = Changes(revision: old)
    for change in changes[low...].prefix(limit) {
      found.revision = change.revision
      if let entry = entries[change.session] {
        // A later change of the list tells it.
        if entry.revision == change.revision { found.entries.append(entry) }
      } else {
        found.removed.append(change.session)
      }
    }
    return found
  }
}
