// The sessions of a store, and their segments in order, for the removal of the oldest.

import FileSystem
import FrameBatches

/// The sessions of a store, by the bytes that they take.
struct SizedStore: SessionsWithSizes {
  let store: ObjectStore
  /// The sessions that have something published.
  let sessions: [SessionID: StoredHeads.Totals]
  let sizes: [SessionID: SessionBytes]
  /// Whether a rule removes a session as a whole.
  let isOver: (RemovalRule, ObjectSession, ObjectSession.Published) throws -> Bool

  func bytes(of session: SessionID) -> SessionBytes? { sizes[session] }

  func segments(of session: SessionID) -> StoredSegments? {
    sessions[session].map { StoredSegments(of: store.session(session), $0, isOver) }
  }
}

/// The segments of a stored session. The first one needs no request, the next ones one for the head and one for each page of the index.
struct StoredSegments: OrderedSegments {
  private let stored: ObjectSession
  /// The session as a list of the index has told it.
  private let known: StoredHeads.Totals
  private let isOver: (RemovalRule, ObjectSession, ObjectSession.Published) throws -> Bool
  /// The session as it is now, from the second segment on.
  private var state = State.unread
  /// The segment that was returned last; nil before the first.
  private var currentMs: Int64?
  private var pages: ArraySlice<ObjectSession.Page> = []
  /// The next segments of the last page that was read, and those that the head lists.
  private var (entries, last): (ArraySlice<SessionEntry>, ArraySlice<SessionEntry>) = ([], [])
  private var bytes = 0

  private enum State {
    case unread, unreadable
    /// Another process has removed all of it meanwhile.
    case gone
    case published(ObjectSession.Published)
  }

  init(
    of session: ObjectSession, _ known: StoredHeads.Totals,
    _ isOver: @escaping (RemovalRule, ObjectSession, ObjectSession.Published) throws -> Bool
  ) {
    (stored, self.known, self.isOver) = (session, known, isOver)
  }

  var session: SessionID { stored.id }

  mutating func next() throws -> Int64? {
    guard let currentMs else {
      self.currentMs = known.startMs
      return known.startMs
    }
    do {
      if case .unread = state { try open() }
      while let entry = try upcoming() {
        if entry.startMs > currentMs {
          self.currentMs = entry.startMs
          return entry.startMs
        }
        bytes = entry.bytes
        entries.removeFirst()
      }
    } catch let error where error.isOfOneSession {
      state = error is SessionDeleted ? .gone : .unreadable
    }
    return nil
  }

  private mutating func open() throws {
    guard let published = try stored.published() else {
      (state, bytes) = (.gone, known.bytes)
      return
    }
    state = .published(published)
    (pages, last) = (published.pages[...], published.index.entries[...])
    // Another process may make a pass at the same time: what it has removed is not to be removed a second time.
    let removed = (published.retention?.segments ?? 0) - known.removed
    if removed > 0 { bytes = Int(Double(known.bytes) * min(1, Double(removed) / Double(known.segments))) }
  }

  private mutating func upcoming() throws -> SessionEntry? {
    while entries.isEmpty {
      if let page = pages.popFirst() {
        entries = try stored.entries(of: page)[...]
      } else if last.isEmpty {
        return nil
      } else {
        (entries, last) = (last, [])
      }
    }
    return entries.first
  }

  func bytesOfVideo(_ startMs: Int64) -> Int { bytes }

  /// A session that cannot be read stays.
  func isOver(_ rule: RemovalRule) throws -> Bool {
    switch state {
    case .published(let published): try isOver(rule, stored, published)
    case .gone: true
    case .unread, .unreadable: false
    }
  }
}
