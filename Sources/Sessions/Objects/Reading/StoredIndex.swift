import Encoding
import FileSystem
import FrameBatches
import Synchronization

/// The part of a stored session that is read.
package enum StoredPart: Sendable {
  case whole
  /// The segments that a reader of this time needs: also two before it, one behind it, and the first and the last of the session.
  case between(SessionInstant?, SessionInstant?)
}

/// The index of a session in an object store, at a moment. It decides which segments are published.
struct StoredIndex {
  /// Maximum number of segments: those of some weeks.
  private static let maximumCount = 500_000
  static let advice =
    "restore the object from a version of the bucket, or delete the session and encode its batches again"

  let session: ObjectSession
  let published: ObjectSession.Published
  let end: SessionEnd?

  /// - Throws: ``BadSession`` if nothing of the session is published, it was deleted, or its index is damaged.
  init(of session: ObjectSession) throws {
    do {
      guard let index = try Self(of: session, Self.reading(session) { try session.head() }) else {
        throw BadSession(
          session.place, "no such session in the store",
          advice: "check the ID; if its first batch still waits for a worker, run this again later")
      }
      self = index
    } catch let deleted as SessionDeleted {
      throw BadSession(session.place, deleted.what, advice: "name another session")
    }
  }

  /// - Returns: nil if nothing is published.
  /// - Throws: ``BadSession`` if the head names more segments than a session has.
  init?(of session: ObjectSession, _ head: ObjectSession.Head) throws(BadSession) {
    guard let published = head.published else { return nil }
    guard published.index.count <= Self.maximumCount, published.pages.count <= published.index.count else {
      throw BadSession(session.name + session.headKey, "more segments than a session has", advice: Self.advice)
    }
    (self.session, self.published, end) = (session, published, head.end)
  }

  /// Returns what `body` reads of an index.
  ///
  /// - Throws: ``BadSession`` if an object is damaged; other errors of `body`.
  static func reading<R>(_ session: ObjectSession, _ body: () throws -> R) throws -> R {
    do {
      return try body()
    } catch let damage as DamagedOutput {
      throw BadSession(damage.path, damage.cause, advice: advice)
    } catch let large as ObjectTooLarge {
      throw BadSession(session.name + large.key, "more than \(large.limit) bytes", advice: advice)
    }
  }

  /// Returns segments in order, those of a part and its neighbours. Of a part of a long session, few pages are read.
  ///
  /// - Parameter progress: called with the number of pages read and of all; an error that it throws ends the work.
  /// - Throws: ``BadSession`` if the pages do not fit the head.
  func entries(of part: StoredPart, progress: (Int, Int) throws -> Void) throws -> [SessionEntry] {
    guard case .between(let from, let to) = part else {
      return try all(pages: read(published.pages, progress))
    }
    let (startMs, index) = (published.index.startMs, published.index)
    let fromMs = from?.unixMs(inSessionFrom: startMs) ?? startMs
    let toMs = max(fromMs, to?.unixMs(inSessionFrom: startMs) ?? .max)
    let pages = published.pages
    // Two segments before the part may lie in the page before; the one behind it in the page behind.
    let first = max(0, (pages.lastIndex { $0.startMs <= fromMs } ?? 0) - 1)
    let last = pages.lastIndex { $0.startMs < toMs } ?? 0
    let wanted = pages.indices.filter { $0 == 0 || (first...last + 1).contains($0) }
    let near = try read(wanted.map { pages[$0] }, progress).joined() + index.entries
    try requireOrder(Array(near))
    let before = max(0, near.count { $0.startMs <= fromMs } - 2)
    let behind = min(near.count, near.count { $0.startMs < toMs } + 1)
    return near.indices.filter { $0 == 0 || $0 == near.count - 1 || (before..<behind).contains($0) }.map { near[$0] }
  }

  /// Returns the pages, with their segments.
  ///
  /// - Parameter known: pages that were read before.
  /// - Throws: ``BadSession`` if they do not fit the head.
  func pages(
    knowing known: [String: [SessionEntry]], progress: (Int, Int) throws -> Void
  ) throws -> [String: [SessionEntry]] {
    let new = published.pages.filter { known[$0.file] == nil }
    let there = published.pages.compactMap { page in known[page.file].map { (page.file, $0) } }
    let all = zip(new.map(\.file), try read(new, progress)) + there
    return Dictionary(all) { first, _ in first }
  }

  /// Returns all segments in order.
  ///
  /// - Parameter pages: see ``pages(knowing:progress:)``.
  /// - Throws: ``BadSession`` if the pages do not fit the head.
  func entries(in pages: [String: [SessionEntry]]) throws(BadSession) -> [SessionEntry] {
    try all(pages: published.pages.map { pages[$0.file] ?? [] })
  }

  private func all(pages: [[SessionEntry]]) throws(BadSession) -> [SessionEntry] {
    let all = pages.joined() + published.index.entries
    try requireOrder(all)
    guard all.count == published.index.count, all[0].startMs == published.index.startMs else {
      throw BadSession(
        session.name + session.headKey, "its pages list \(all.count) segments instead of \(published.index.count)",
        advice: Self.advice)
    }
    return all
  }

  /// Returns the first segment. Of a long session, one page is read.
  ///
  /// - Throws: ``BadSession`` if the page is damaged.
  func first() throws -> SessionEntry {
    guard let page = published.pages.first else { return published.index.entries[0] }
    return try Self.reading(session) { try session.entries(of: page)[0] }
  }

  /// The records of removed segments and of the end, as far as there are any. Readers leave out the segments before the first one's start.
  var records: [(name: String, bytes: [UInt8])] {
    let retention = published.retention.map { (SessionRetention.file, $0.bytes(of: session.id)) }
    return [retention, end.map { (SessionEnd.file, $0.bytes) }].compactMap { $0 }
  }

  /// Returns `session.json` and `session.ffconcat`.
  ///
  /// - Parameter entries: all of the session.
  func views(of entries: [SessionEntry]) -> [(name: String, bytes: [UInt8])] {
    // In a copy, each segment is a file of its own.
    IndexText(published.index.listing(entries.map(\.unpacked))).files
  }

  private func requireOrder(_ entries: [SessionEntry]) throws(BadSession) {
    guard zip(entries, entries.dropFirst()).allSatisfy({ $0.startMs < $1.startMs }) else {
      throw BadSession(session.name + session.headKey, "its pages are out of order", advice: Self.advice)
    }
  }

  private func read(
    _ pages: [ObjectSession.Page], _ progress: (Int, Int) throws -> Void
  ) throws -> [[SessionEntry]] {
    let left = Left(published.index.count)
    return try Self.reading(session) {
      try ParallelFetch.map(
        pages, { [session] in try left.taken(session.entries(of: $0), of: $0, in: session) },
        progress: { try progress($0, pages.count) })
    }
  }
}

/// The number of segments that pages may still list.
private final class Left: Sendable {
  private let count: Mutex<Int>

  init(_ count: Int) { self.count = Mutex(count) }

  /// Returns the segments of a page.
  ///
  /// - Throws: ``DamagedOutput`` if there are more than are left.
  func taken(
    _ entries: [SessionEntry], of page: ObjectSession.Page, in session: ObjectSession
  ) throws -> [SessionEntry] {
    let left = count.withLock { count in
      count -= entries.count
      return count
    }
    guard left >= 0 else {
      throw DamagedOutput(path: session.name + session.indexKey(page.file), cause: "more segments than in the head")
    }
    return entries
  }
}

extension ObjectSession {
  /// The place of its objects, for messages.
  var place: String { String((name + key("")).dropLast()) }
}
