// The facts of all sessions of a store, for lists. A round walks over `index/`, whose list tells the tag of each head, and
// fetches those that have changed, the newest first. An answer never waits for a whole round of a large store.

import Encoding
import FileSystem
import FrameBatches
import Synchronization

/// The sessions of a store with an index, as they were last seen. For any thread.
package final class StoredHeads: Sendable {
  /// The facts of a session.
  package struct Totals: Sendable, Equatable {
    package let startMs, endMs: Int64
    package let frames, segments, gaps, bytes: Int
    package let isComplete: Bool
    package let labels: LabelCounts
    /// The number of first segments that were removed, and whether objects of them may still be there.
    let removed: Int
    let isRemoving: Bool
    /// Whether compaction has nothing left to do, whatever the ages of segments.
    let isCompact: Bool
    /// Whether the segments and bytes can be those of its lists. A head that others have written may claim any.
    let isPlausible: Bool
  }

  package enum Content: Sendable, Equatable {
    case published(Totals)
    /// It cannot be read.
    case damaged(String)
    case deleted
    /// Nothing is published. Retention may still have to remove its objects.
    case nothing(isRemoving: Bool)

    /// Whether it is in a list.
    var isListed: Bool {
      switch self {
      case .published, .damaged: true
      case .deleted, .nothing: false
      }
    }
  }

  private struct Entry: Sendable {
    let tag: ObjectTag
    let content: Content
    /// Of pages, which do not change.
    let pages: [String: PageFacts]
    /// The number of the change that made it so.
    let revision: Int
  }

  private struct State: Sendable {
    var entries: [SessionID: Entry] = [:]
    var revision = 0
    /// When the last whole round began and ended, in monotonic milliseconds; nil before.
    var (begunMs, endedMs): (Int?, Int?) = (nil, nil)
    /// The number of its lists.
    var lists = 0
    /// When the next one is due.
    var dueMs = 0
    /// When the list was asked for.
    var askedMs: Int?
    /// Why the last round ended early.
    var failure: (any Error)?
  }

  private struct Round {
    var walk: ListWalk?
    var isListed = false
    var found: Set<SessionID> = []
    /// The heads to fetch, the newest last.
    var rest: [ListedHead] = []
    var (lists, objects) = (0, 0)
    var begunMs = 0
  }

  private struct ListedHead: Sendable {
    let session: SessionID
    let tag: ObjectTag
    let modifiedMs: Int64
  }

  /// Bounds of a walk, far above those of a store of ours.
  private static let (maximumSessions, maximumObjects, maximumPages) = (1_000_000, 20_000_000, 20_000)
  /// Requests that an answer sends at most, and the heads that a step of the background fetches at once.
  private static let (answerRequests, atOnce) = (18, 256)
  /// Milliseconds from one round to the next, at least and for each list of the last one: while pages ask for the list, and otherwise.
  private static let (askedMs, idleMs) = ((least: 4_000, each: 1_000), (least: 60_000, each: 10_000))
  /// Milliseconds without a request after which nobody looks at the list; after which a round that is due is late, because no thread
  /// keeps the list; and before a failed one is tried again.
  private static let (leaveMs, lateMs, retryMs) = (600_000, 1_000, 2_000)
  /// Milliseconds for which an answer waits for the first session.
  private static let patienceMs = 10_000

  private let store: StoredSessions
  private let clock: @Sendable () -> Int
  /// Whether the pages of long sessions are read, for the number of gaps.
  private let countsGaps: Bool
  private let state = Monitor(State())
  /// Only one thread makes steps.
  private let round = Mutex(Round())

  /// - Parameter countsGaps: whether the pages of long sessions are read, for the number of gaps.
  init(
    of store: StoredSessions, countsGaps: Bool = true,
    clock: @escaping @Sendable () -> Int = MonotonicClock.milliseconds
  ) {
    (self.store, self.countsGaps, self.clock) = (store, countsGaps, clock)
  }

  // MARK: - Answers

  /// Call it before an answer from this list. If nobody keeps the list, it sends a few requests, and what they tell is enough for a
  /// small store.
  ///
  /// - Throws: an error of the store; ``Failure`` if nothing is known yet.
  package func prepare() throws {
    let nowMs = clock()
    let (isOverdue, failure) = state.change { state in
      state.askedMs = nowMs
      // The last round may have ended while nobody looked at the list.
      if state.failure == nil, let endedMs = state.endedMs {
        state.dueMs = min(state.dueMs, endedMs + Self.pauseMs(Self.askedMs, state.lists))
      }
      let isOverdue = state.endedMs == nil || nowMs - state.dueMs >= Self.lateMs
      return (isOverdue || state.failure != nil, nowMs < state.dueMs ? state.failure : nil)
    }
    if let failure { throw failure }
    guard isOverdue else { return }
    try round.withLockIfAvailable { round in
      var requests = 0
      repeat {
        requests += try step(&round, heads: Self.answerRequests - requests)
      } while round.walk != nil
        && requests < Self.answerRequests
    }
    let untilMs = MonotonicClock.milliseconds() + Self.patienceMs
    let isKnown = state.wait { state -> Monitor<State>.CheckResult<Result<Bool, any Error>> in
      if let failure = state.failure { return .found(.failure(failure)) }
      if state.endedMs != nil || !state.entries.isEmpty { return .found(.success(true)) }
      let leftMs = untilMs - MonotonicClock.milliseconds()
      return leftMs > 0 ? .wait(ms: leftMs) : .found(.success(false))
    }
    guard try isKnown.get() else { throw StoredListUnread(name: store.name) }
  }

  /// Throws if the last request to the store has failed.
  package func requireStore() throws { if let failure = state.read({ $0.failure }) { throw failure } }

  /// Whether there may be sessions that are not known yet.
  package var isPartial: Bool { state.read { $0.endedMs == nil } }

  /// The number of the last change.
  package var revision: Int { state.read { $0.revision } }

  /// The sessions of the list, in no order.
  package var sessions: [SessionID] { state.read { $0.entries.filter { $0.value.content.isListed }.map(\.key) } }

  /// Returns the facts of a session, and the number of its last change; nil if it is not in the list.
  package func content(of id: SessionID) -> (content: Content, revision: Int)? {
    state.read { $0.entries[id] }.flatMap { $0.content.isListed ? ($0.content, $0.revision) : nil }
  }

  /// All sessions of the index.
  var all: [SessionID: Content] { state.read { $0.entries.mapValues(\.content) } }

  /// The facts of the sessions that have something published.
  var published: [SessionID: Totals] {
    all.compactMapValues { content in if case .published(let totals) = content { totals } else { nil } }
  }

  /// The number of lists of the last whole round.
  var lists: Int { state.read { $0.lists } }

  /// Returns the tag of a session's head; nil if it is not known.
  func tag(of id: SessionID) -> ObjectTag? { state.read { $0.entries[id]?.tag } }

  /// Returns those of some sessions that were deleted, and those that are not there any more.
  ///
  /// - Parameter seenMs: when the session was last seen with something published, in monotonic milliseconds; nil if it was not.
  func removed(
    among sessions: Set<SessionID>, seenMs: (SessionID) -> Int?
  ) -> (deleted: Set<SessionID>, missing: Set<SessionID>) {
    state.read { state in
      guard let begunMs = state.begunMs else { return ([], []) }
      // The list may be older than the sight.
      let old = sessions.filter { id in seenMs(id).map { $0 < begunMs } ?? true }
      let deleted = old.filter { state.entries[$0]?.content == .deleted }
      return (deleted, old.filter { state.entries[$0] == nil })
    }
  }

  // MARK: - Rounds

  /// Makes a round if one is due. Call it some times a second, on a thread of its own.
  ///
  /// - Throws: an error of the store. The next round begins some seconds later.
  package func refresh() throws {
    let nowMs = clock()
    guard state.read({ nowMs >= $0.dueMs }) else { return }
    try round.withLockIfAvailable { round in
      repeat { _ = try step(&round, heads: Self.atOnce) } while round.walk != nil
    }
  }

  /// Makes a round, whether one is due or not.
  ///
  /// - Parameter check: called between requests; after an error that it throws, the next round goes on.
  /// - Throws: an error of the store.
  package func readAll(_ check: () throws -> Void) throws {
    try round.withLock { round in
      repeat {
        try check()
        _ = try step(&round, heads: Self.atOnce)
      } while round.walk != nil
    }
  }

  /// Sends the next requests of a round: one for a list, and some for heads.
  ///
  /// - Parameter count: maximum number of heads.
  /// - Returns: the number of requests, without those for pages of long sessions.
  private func step(_ round: inout Round, heads count: Int) throws -> Int {
    do {
      var requests = 0
      if !round.isListed {
        try list(&round)
        requests += 1
      }
      let wanted = Array(round.rest.suffix(max(0, count)))
      round.rest.removeLast(wanted.count)
      try fetch(wanted)
      if round.isListed && round.rest.isEmpty { end(&round) }
      return requests + wanted.count
    } catch {
      round = Round()
      let nowMs = clock()
      state.change { ($0.failure, $0.dueMs) = (error, nowMs + Self.retryMs) }
      throw error
    }
  }

  /// Reads the next list.
  private func list(_ round: inout Round) throws {
    let prefix = "index/"
    if round.walk == nil { round.begunMs = clock() }
    var walk = round.walk ?? store.walk(prefix)
    let page = try walk.next()
    round.walk = walk
    round.lists += 1
    guard let page else {
      round.isListed = true
      return
    }
    round.objects += page.count
    let known = state.read { $0.entries }
    var new: [ListedHead] = []
    for object in page {
      let parts = object.key.dropFirst(prefix.count).split(separator: "/", omittingEmptySubsequences: false)
      guard parts.count == 2, parts[1] == "head.json", let id = SessionID(String(parts[0])) else { continue }
      round.found.insert(id)
      if known[id]?.tag != object.tag {
        new.append(ListedHead(session: id, tag: object.tag, modifiedMs: object.modifiedMs ?? 0))
      }
    }
    if !new.isEmpty { round.rest = (round.rest + new).sorted { $0.modifiedMs < $1.modifiedMs } }
    guard round.found.count <= Self.maximumSessions, round.objects <= Self.maximumObjects else {
      throw Failure(
        .environment, "list", store.name + prefix, "more than \(Self.maximumSessions) sessions, or other objects",
        advice: "serve some of them from a store of their own")
    }
  }

  private func fetch(_ heads: [ListedHead]) throws {
    let known = state.read { state in heads.map { state.entries[$0.session] } }
    let now = try ParallelFetch.map(
      Array(zip(heads, known)), { [self] in try entry($0, after: $1) }, progress: { _ in })
    state.change { state in
      for (head, entry) in zip(heads, now) {
        state.revision += 1
        state.entries[head.session] = Entry(
          tag: entry.tag, content: entry.content, pages: entry.pages, revision: state.revision)
      }
      state.failure = nil
    }
  }

  private func end(_ round: inout Round) {
    let nowMs = clock()
    state.change { state in
      let gone = state.entries.keys.filter { !round.found.contains($0) }
      for id in gone { state.entries[id] = nil }
      if !gone.isEmpty { state.revision += 1 }
      let isAsked = state.askedMs.map { nowMs - $0 < Self.leaveMs } ?? false
      (state.begunMs, state.endedMs, state.failure) = (round.begunMs, nowMs, nil)
      state.lists = round.lists
      state.dueMs = nowMs + Self.pauseMs(isAsked ? Self.askedMs : Self.idleMs, round.lists)
    }
    round = Round()
  }

  private static func pauseMs(_ pause: (least: Int, each: Int), _ lists: Int) -> Int {
    max(pause.least, pause.each * lists)
  }

  // MARK: - One head

  private func entry(_ head: ListedHead, after known: Entry?) throws -> Entry {
    var pages: [String: PageFacts] = [:]
    let session = store.session(head.session)
    let content: Content
    do {
      let head = try session.head()
      if let published = head.published {
        if countsGaps { pages = try facts(of: published, known?.pages ?? [:], in: session) }
        content = try .published(Totals(published, pages))
      } else {
        content = .nothing(isRemoving: head.isRemoving)
      }
    } catch is SessionDeleted {
      content = .deleted
    } catch let damage as DamagedOutput {
      content = .damaged("\(damage.path): \(damage.cause)")
    } catch let large as ObjectTooLarge {
      content = .damaged("\(store.name)\(large)")
    } catch let error as ObjectStoreError where error.isOfOneObject {
      content = .damaged("\(error)")
    }
    return Entry(tag: head.tag, content: content, pages: pages, revision: 0)
  }

  /// Returns the facts of pages. Those that are known are not fetched again.
  private func facts(
    of published: ObjectSession.Published, _ known: [String: PageFacts], in session: ObjectSession
  ) throws -> [String: PageFacts] {
    guard published.pages.count <= Self.maximumPages else {
      throw DamagedOutput(path: session.name + session.headKey, cause: "more pages than a session has")
    }
    return try published.pages.reduce(into: [:]) { facts, page in
      facts[page.file] = try facts[page.file] ?? known[page.file] ?? PageFacts(session.entries(of: page))
    }
  }
}

/// The facts of a page of an index, for a list.
private struct PageFacts: Sendable {
  let first, last: SessionEntry
  let gaps: Int

  init(_ entries: [SessionEntry]) {
    (first, last) = (entries[0], entries[entries.count - 1])
    gaps = zip(entries, entries.dropFirst()).count { $0.gap(before: $1) != nil }
  }
}

extension StoredHeads.Totals {
  fileprivate init(_ published: ObjectSession.Published, _ pages: [String: PageFacts]) throws {
    let index = published.index
    let parts = published.pages.compactMap { pages[$0.file] }
    let nexts = parts.dropFirst().map(\.first) + [index.entries[0]]
    let gaps = zip(parts, nexts).reduce(index.gaps.count) {
      $0 + $1.0.gaps + ($1.0.last.gap(before: $1.1) == nil ? 0 : 1)
    }
    let listed = index.entries.reduce(0) { $0 + $1.bytes }
    let segments = index.count - index.entries.count
    let areIn = segments <= published.pages.count * ObjectSession.Page.size
    let isPlausible =
      areIn && (0...segments * SegmentManifest.maximumVideoBytes).contains(index.bytes - listed)
      && listed <= index.entries.count * SegmentManifest.maximumVideoBytes
    self.init(
      startMs: index.startMs, endMs: index.endMs, frames: index.frames, segments: index.count, gaps: gaps,
      bytes: index.bytes, isComplete: index.isComplete, labels: index.totals.labels,
      removed: published.retention?.segments ?? 0,
      isRemoving: published.retention?.isRemoving == true, isCompact: published.isCompact, isPlausible: isPlausible)
  }
}

/// Nothing is known of a store's sessions yet.
package struct StoredListUnread: ClassifiedError {
  package var kind: Failure.Kind { .environment }
  package let name: String
  package var description: String { "the list of the sessions of \(name) is being read" }
}
