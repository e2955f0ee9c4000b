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
      let head = try session.head()
      guard let published = head.published else {
        throw BadSession(
          session.place, "no such session in the store",
          advice: "check the ID; if its first batch still waits for a worker, run this again later")
      }
      guard published.index.count <= Self.maximumCount, published.pages.count <= published.index.count else {
        throw DamagedOutput(path: session.name + session.headKey, cause: "more segments than a session has")
      }
      (self.session, self.published, end) = (session, published, head.end)
    } catch let deleted as SessionDeleted {
      throw BadSession(session.place, deleted.what, advice: "name another session")
    } catch let damage as DamagedOutput {
      throw BadSession(damage.path, damage.cause, advice: Self.advice)
    } catch let large as ObjectTooLarge {
      throw BadSession(session.name + large.key, "more than \(large.limit) bytes", advice: Self.advice)
    }
  }

  /// Returns segments in order, those of a part and its neighbours. Of a part of a long session, few pages are read.
  ///
  /// - Parameter progress: called with the number of pages read and of all; an error that it throws ends the work.
  /// - Throws: ``BadSession`` if the pages do not fit the head.
  func entries(of part: StoredPart, progress: (Int, Int) throws -> Void) throws -> [SessionEntry] {
    guard case .between(let from, let to) = part else { return try all(progress) }
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

  private func all(_ progress: (Int, Int) throws -> Void) throws -> [SessionEntry] {
    let all = try read(published.pages, progress).joined() + published.index.entries
    try requireOrder(all)
    guard all.count == published.index.count, all[0].startMs == published.index.startMs else {
      throw BadSession(
        session.name + session.headKey, "its pages list \(all.count) segments instead of \(published.index.count)",
        advice: Self.advice)
    }
    return all
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
    do {
      return try ParallelFetch.map(
        pages, { [session] in try left.taken(session.entries(of: $0), of: $0, in: session) },
        progress: { try progress($0, pages.count) })
    } catch let damage as DamagedOutput {
      throw BadSession(damage.path, damage.cause, advice: Self.advice)
    } catch let large as ObjectTooLarge {
      throw BadSession(session.name + large.key, "more than \(large.limit) bytes", advice: Self.advice)
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
