// The sessions of an object store for viewers: each is copied when it is first asked for, and follows the store from then on. A look at
// its head tells whether it has changed, once a second at most.

import FileSystem
import FrameBatches
import Synchronization

/// Private copies of the sessions of a store. For any thread.
package final class StoredOutput: Sendable {
  /// Maximum size of all copies, in bytes.
  package static let maximumBytes = 4 << 30
  /// Milliseconds for which a look at a head is good. The sessions that versions before the index published have none.
  private static let (headMs, noHeadMs) = (1_000, 60_000)
  /// Sessions that are copied at the same time, and copies that are kept.
  private static let (width, maximumCopies, maximumGlances) = (8, 256, 256)

  /// The result of a look at a session.
  private enum Seen: Sendable {
    case nothing
    case deleted(Tombstone)
    case published(ObjectSession.Head)
    case failed(any Error)

    /// Returns the head; nil if nothing is published.
    ///
    /// - Throws: ``SessionDeleted``; the failure of the look.
    func head() throws -> ObjectSession.Head? {
      switch self {
      case .nothing: return nil
      case .deleted(let tombstone): throw SessionDeleted(tombstone)
      case .failed(let error): throw error
      case .published(let head): return head
      }
    }
  }

  private struct Glance: Hashable, Sendable {
    let session: SessionID
    /// Of the segment: its digest, or the page that it is the first of.
    let identity: String
  }

  private struct Look: Sendable {
    let seen: Seen
    /// In monotonic milliseconds.
    var atMs: Int
  }

  private struct State {
    var looks = LRUCache<SessionID, Look>(limit: 1_000)
    var copies = LRUCache<SessionID, SessionCopy>(limit: .max)
    /// Copies of single segments, for pictures in a list.
    var glances = LRUCache<Glance, SessionCopy>(limit: StoredOutput.maximumGlances)
    var number = 0
  }

  private let store: StoredSessions
  /// The heads of all sessions, for lists.
  package let heads: StoredHeads
  private let staging: Staging
  private let scratch: Staging.Scratch
  private let space: CopySpace
  private let clock: @Sendable () -> Int
  private let state = Mutex(State())
  /// Sessions that are copied, and sessions that are looked at.
  private let (locks, looking) = (KeyLocks<SessionID>(width: width), KeyLocks<SessionID>())
  private let glancing = KeyLocks<Glance>()
  private let evicted = Mutex<(@Sendable (SessionID) -> Void)?>(nil)

  /// - Parameters:
  ///   - staging: a private directory, for this object only.
  ///   - maximumBytes: of all copies.
  ///   - clock: monotonic milliseconds.
  package init(
    _ store: StoredSessions, in staging: Staging, maximumBytes: Int = StoredOutput.maximumBytes,
    _ freeSpace: FreeSpace = FreeSpace(), clock: @escaping @Sendable () -> Int = MonotonicClock.milliseconds
  ) throws {
    (self.store, self.staging, self.clock) = (store, staging, clock)
    heads = StoredHeads(of: store, clock: clock)
    scratch = Staging.Scratch(in: staging)
    try scratch.make()
    space = CopySpace(limit: maximumBytes, freeSpace, at: staging.output)
    space.onShortage { [weak self] in self?.evictOldest() ?? false }
  }

  deinit { remove() }

  /// The directory of all copies.
  package var path: String { scratch.path }
  /// The store's name in messages.
  package var name: String { store.name }
  /// The bytes that the copies take.
  package var bytes: Int { space.total }

  /// Free bytes on the file system of the copies.
  package func freeBytes() throws -> Int { try staging.freeBytes() }

  /// Removes all copies. Call it at the end of a process, which may end before the last reference goes.
  package func remove() {
    state.withLock { state in
      state.copies.removeAll { _ in true }
      state.glances.removeAll { _ in true }
    }
    scratch.remove()
    staging.remove()
  }

  /// Sets a function that is called when a copy is not kept any more.
  package func onEviction(_ body: @escaping @Sendable (SessionID) -> Void) { evicted.withLock { $0 = body } }

  // MARK: - One session

  /// Returns the tombstone of a session; nil if it was not deleted. It copies nothing.
  ///
  /// - Parameter progress: called now and then; an error that it throws ends the wait.
  package func tombstone(of id: SessionID, progress: () throws -> Void = {}) throws -> Tombstone? {
    switch try look(id, progress) {
    case .deleted(let tombstone): return tombstone
    case .nothing, .published, .failed: return nil
    }
  }

  /// Returns the copy of a session as the session is now; nil if there is no such session.
  ///
  /// - Parameter progress: called now and then; an error that it throws ends the copying. The next call goes on.
  /// - Throws: ``SessionDeleted``; ``BadSession`` if an object is damaged; an error of the store or the disk.
  package func copy(of id: SessionID, progress: () throws -> Void = {}) throws -> SessionCopy? {
    if case .published(let head)? = freshLook(id)?.seen, let copy = current(id, head) { return copy }
    return try locks.withLock(id, checking: progress) {
      guard let head = try look(id, progress).head() else { return nil }
      if let copy = current(id, head) { return copy }
      do {
        return try update(id, to: head, progress: progress)
      } catch {
        // The requests that wait for the same need not try it again. A client that has gone says nothing of the session.
        if (error as? any ClassifiedError)?.kind != .cancelled { note(.failed(error), of: id) }
        throw error
      }
    }
  }

  /// Returns the copy of a session as it was last asked for; nil if it is not kept, or the list knows that the session has changed.
  package func knownCopy(of id: SessionID) -> SessionCopy? {
    guard let tag = heads.tag(of: id), let copy = state.withLock({ $0.copies.value(of: id) }), copy.tag == tag,
      copy.isIntact
    else { return nil }
    return copy
  }

  private func current(_ id: SessionID, _ head: ObjectSession.Head) -> SessionCopy? {
    guard let copy = state.withLock({ $0.copies.value(of: id) }), copy.isOf(head), copy.isIntact else { return nil }
    return copy
  }

  /// Returns a copy that has at least the first or the last segment of a session, so that its picture needs few requests; nil if there
  /// is no such session.
  ///
  /// Parameters and errors as of ``copy(of:progress:)``.
  package func glance(
    atEndOf id: SessionID, isLast: Bool, progress: () throws -> Void = {}
  ) throws -> SessionCopy? {
    guard let head = try look(id, progress).head() else { return nil }
    if let copy = current(id, head) { return copy }
    guard let index = try StoredIndex(of: store.session(id), head) else { return nil }
    let (pages, entries) = (index.published.pages, index.published.index.entries)
    let identity = isLast ? index.published.index.last.sha256 : pages.first?.file ?? entries[0].sha256
    let glance = Glance(session: id, identity: identity)
    return try glancing.withLock(glance, checking: progress) {
      if let known = state.withLock({ $0.glances.value(of: glance) }), known.isIntact { return known }
      let copy = try newCopy(of: id)
      try copy.copy(only: isLast ? index.published.index.last : index.first())
      state.withLock { $0.glances.insert(copy, for: glance) }
      return copy
    }
  }

  private func newCopy(of id: SessionID) throws -> SessionCopy {
    let number = state.withLock { state in
      state.number += 1
      return state.number
    }
    return try SessionCopy(
      of: store.session(id), in: store, space, output: "\(scratch.path)/\(number)", staging: staging, clock: clock)
  }

  /// Copies a session, or what is new of it. Call it with the session locked.
  private func update(
    _ id: SessionID, to head: ObjectSession.Head, progress: () throws -> Void
  ) throws -> SessionCopy? {
    if let known = state.withLock({ $0.copies.value(of: id) }) {
      if known.isUsable, try known.update(to: head, progress: progress) { return known }
      drop(id)
    }
    let surplus = state.withLock { $0.copies.keys.count - Self.maximumCopies + 1 }
    for _ in 0..<max(0, surplus) { _ = evictOldest() }
    let copy = try newCopy(of: id)
    // Kept from now on: what a client that goes away has waited for is not lost.
    state.withLock { $0.copies.insert(copy, for: id) }
    return try copy.update(to: head, progress: progress) ? copy : nil
  }

  private func freshLook(_ id: SessionID) -> Look? {
    guard let look = state.withLock({ $0.looks.value(of: id) }) else { return nil }
    let isWithoutHead = if case .published(let head) = look.seen { head.tag == nil } else { false }
    return clock() - look.atMs < (isWithoutHead ? Self.noHeadMs : Self.headMs) ? look : nil
  }

  /// Looks at the head of a session.
  private func look(_ id: SessionID, _ progress: () throws -> Void) throws -> Seen {
    if let look = freshLook(id) { return look.seen }
    return try looking.withLock(id, checking: progress) { freshLook(id)?.seen ?? newLook(id) }
  }

  private func newLook(_ id: SessionID) -> Seen {
    let session = store.session(id)
    do {
      if case .published(let head)? = state.withLock({ $0.looks.value(of: id) })?.seen, let tag = head.tag,
        try session.objects.head(session.headKey)?.tag == tag
      {
        return note(.published(head), of: id)
      }
      let head = try StoredIndex.reading(session) { try session.head() }
      guard head.published != nil else {
        drop(id)
        return note(.nothing, of: id)
      }
      return note(.published(head), of: id)
    } catch let deleted as SessionDeleted {
      drop(id)
      return note(.deleted(deleted.tombstone), of: id)
    } catch {
      return note(.failed(error), of: id)
    }
  }

  @discardableResult private func note(_ seen: Seen, of id: SessionID) -> Seen {
    let look = Look(seen: seen, atMs: clock())
    state.withLock { $0.looks.insert(look, for: id) }
    return seen
  }

  // MARK: - Removal

  /// Returns those of some sessions that were deleted, and those that are not in the store any more, as far as the list knows. Their
  /// copies go.
  package func removed(among sessions: Set<SessionID>) -> (deleted: Set<SessionID>, missing: Set<SessionID>) {
    let (copied, looks) = state.withLock { ($0.copies.keys + $0.glances.keys.map(\.session), $0.looks) }
    var known = looks
    let removed = heads.removed(among: sessions.union(copied)) { id in
      guard let look = known.value(of: id), case .published = look.seen else { return nil }
      return look.atMs
    }
    for id in removed.deleted.union(removed.missing) { drop(id) }
    return removed
  }

  /// Keeps a copy no more. Its files go when the last reader has ended.
  private func drop(_ id: SessionID) {
    let copy = state.withLock { state in
      state.glances.removeAll { $0.session == id }
      defer { state.copies.removeAll { $0 == id } }
      return state.copies.value(of: id)
    }
    if copy != nil { evicted.withLock { $0 }?(id) }
  }

  /// Drops the copies of single segments, or the copy that was not used for longest. The one that was used last stays.
  ///
  /// - Returns: whether there was one.
  private func evictOldest() -> Bool {
    let (glances, keys) = state.withLock { state in
      defer { state.glances.removeAll { _ in true } }
      return (state.glances.keys, state.copies.keys)
    }
    if !glances.isEmpty { return true }
    guard keys.count > 1 else { return false }
    drop(keys[0])
    return true
  }
}
