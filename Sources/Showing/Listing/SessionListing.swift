// The list of an output's sessions, kept in memory. Directory times tell which sessions came and went, and the time of a session's
// index tells whether it has changed. Notifications of the kernel miss what other hosts write.
//
// An answer checks the indexes of the sessions that it shows, and of those that changed last. A scan in the background checks all
// others. It begins with the names in the directory: some file systems do not change the directory's time.

import FileSystem
import FrameBatches
import JSON
import Synchronization

package final class SessionListing: Sendable {
  private struct State {
    var list = ListedSessions()
    /// Directories that have no index, maybe not yet.
    var unlisted: Set<SessionID> = []
    /// The sessions that changed last, the latest first.
    var recent: [SessionID] = []
    /// The rest of the scan of all sessions, and how many of them a step checks.
    var scan: ArraySlice<SessionID> = []
    var scanStep = 0
    /// See ``ListedOutput/stamps()``; nil before the first reading.
    var stamps: [FileStamp?]?
    /// When they were first seen, in monotonic milliseconds, and whether the output was read late enough after that: two changes
    /// within a tick of the file system's clock have one stamp.
    var stampedMs = 0
    var isSettled = false
    /// When the list was asked for, in monotonic milliseconds.
    var askedMs: Int?
    /// See ``ListedOutput/isPartial``.
    var isPartial = false

    var count: Int { list.entries.count + unlisted.count }
    var all: [SessionID] { Array(list.entries.keys) + unlisted }

    func isKnown(_ session: SessionID) -> Bool { list.entries[session] != nil || unlisted.contains(session) }
  }

  /// Sessions of a page at most.
  package static let mostOnPage = 1_000
  /// Each answer checks all sessions of an output that has no more than these.
  static let fewSessions = 1_000
  /// Recent sessions, and directories without an index, that each answer checks.
  static let recentCount = 250
  /// The number of steps of a scan.
  static let scanSteps = 20
  /// Scans stop so long after the last request.
  static let idleMs = 600_000
  /// Ticks of a file system's clock at most, in milliseconds; the longer one if it has whole seconds, or every other second, only.
  private static let (tickMs, longTickMs) = (100, 2_500)
  /// Known sessions that are checked while other requests wait.
  private static let atOnce = 500

  private let open: @Sendable () throws -> any ListedOutput
  private let clock: @Sendable () -> Int
  private let state = Mutex(State())
  /// Tells the revisions of this list from those of another process.
  private let epoch = String(UInt64.random(in: 0 ... .max), radix: 36)

  package convenience init(of output: String) { self.init { try ListedDirectory(opening: output) } }

  /// - Parameters:
  ///   - clock: monotonic milliseconds.
  ///   - open: opens the output.
  init(
    clock: @escaping @Sendable () -> Int = MonotonicClock.milliseconds,
    open: @escaping @Sendable () throws -> any ListedOutput
  ) {
    self.clock = clock
    self.open = open
  }

  // MARK: - Answers

  /// Returns all sessions, the newest first. It checks each.
  package func summaries() throws -> [SessionSummary] { try answer(showing: .all) { $0.sorted }.map(\.summary) }

  /// Returns all sessions on one page, the newest first. It checks each.
  package func all() throws -> SessionListPage {
    let (entries, totals) = try answer(showing: .all) { ($0.sorted, $0.totals) }
    return SessionListPage(entries, name(totals.revision), isPartial ? ["partial": .bool(true)] : [:])
  }

  /// Returns some sessions behind a place of the list, the newest first.
  ///
  /// - Parameter place: the end of the page before; nil for the first page.
  package func page(behind place: ListPlace?, limit: Int) throws -> SessionListPage {
    let limit = min(max(1, limit), Self.mostOnPage)
    let (page, totals) = try answer(showing: .page(behind: place, limit: limit)) {
      ($0.page(behind: place, limit: limit), $0.totals)
    }
    return self.page(page.entries, totals, ["next": page.next.map { .string($0.text) }], revision: totals.revision)
  }

  /// Returns the sessions that have changed since a revision, and those that were removed.
  ///
  /// - Returns: nil if the revision is of another process, or too old: ask for all pages again.
  package func changes(since revision: String, limit: Int) throws -> SessionListPage? {
    let parts = revision.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, parts[0] == epoch, let old = Int(parts[1]) else { return nil }
    let limit = min(max(1, limit), Self.mostOnPage)
    let (found, totals) = try answer(showing: .nothing) { ($0.changes(since: old, limit: limit), $0.totals) }
    guard let changes = found else { return nil }
    let members: [String: JSONValue?] = [
      "since": .string(name(old)), "removed": .array(changes.removed.map { .string($0.description) }),
      "more": changes.revision < totals.revision ? .bool(true) : nil,
    ]
    return page(changes.entries, totals, members, revision: changes.revision)
  }

  /// Returns the number of sessions and the size of their segments.
  package func totals() throws -> (sessions: Int, bytes: Int) {
    try answer(showing: .nothing) { ($0.totals.sessions, $0.totals.bytes) }
  }

  private func page(
    _ entries: [ListedSessions.Entry], _ totals: ListedSessions.Totals, _ members: [String: JSONValue?], revision: Int
  ) -> SessionListPage {
    let name = name(revision)
    let all: [String: JSONValue?] = [
      "total": .number(totals.sessions), "frames": .number(totals.frames), "bytes": .number(totals.bytes),
      "revision": .string(name), "partial": isPartial ? .bool(true) : nil,
    ]
    return SessionListPage(entries, name, members.merging(all) { $1 }.compactMapValues { $0 })
  }

  private var isPartial: Bool { state.withLock { $0.isPartial } }

  private func name(_ revision: Int) -> String { "\(epoch)-\(revision)" }

  // MARK: - Checks

  /// The sessions that an answer shows.
  private enum Shown {
    case nothing
    case page(behind: ListPlace?, limit: Int)
    case all

    /// The sessions that are checked for the answer: those that it shows and those that have changed last, or all of a short list.
    func checked(of state: State) -> [SessionID] {
      if state.count <= SessionListing.fewSessions { return state.all }
      let shown: [SessionID]
      switch self {
      case .nothing: shown = []
      case .page(let place, let limit):
        shown = state.list.page(behind: place, limit: limit).entries.map(\.summary.session)
      case .all: return state.all
      }
      return (shown + state.recent + state.unlisted.prefix(SessionListing.recentCount)).withoutRepetitions
    }
  }

  /// Checks sessions, and takes an answer out of the list.
  ///
  /// - Parameter body: other requests wait for it, so it makes no JSON.
  private func answer<R: Sendable>(showing shown: Shown, _ body: (ListedSessions) -> R) throws -> R {
    let output = try open()
    try output.prepare()
    let sessions = try state.withLock { state in
      let nowMs = clock()
      (state.askedMs, state.isPartial) = (nowMs, output.isPartial)
      try Self.findSessions(&state, in: output, nowMs)
      return shown.checked(of: state)
    }
    check(sessions, in: output)
    return state.withLock { body($0.list) }
  }

  /// Makes a step of the scan of all sessions. Call it every few seconds. The first call reads the whole output, so that the first
  /// page need not wait for it. Without requests for the list, nothing is scanned.
  package func refresh() throws {
    let nowMs = clock()
    let isAsked = state.withLock { state in
      state.askedMs.map { nowMs - $0 < Self.idleMs } ?? (state.stamps == nil)
    }
    guard isAsked else { return }
    let output = try open()
    let step = try state.withLock { state in
      let isNew = state.scan.isEmpty
      try Self.findSessions(&state, in: output, nowMs, isForced: isNew)
      if isNew {
        state.scan = state.all[...]
        state.scanStep = max(Self.atOnce, (state.scan.count + Self.scanSteps - 1) / Self.scanSteps)
      }
      let step = Array(state.scan.prefix(state.scanStep))
      state.scan.removeFirst(step.count)
      return step
    }
    check(step, in: output)
  }

  /// Finds the sessions that came and went, and reads new ones at once, however many: no answer may be without them. If none came
  /// or went, it costs two calls.
  ///
  /// - Parameter isForced: reads the names even if the directory's time has not changed.
  private static func findSessions(
    _ state: inout State, in output: any ListedOutput, _ nowMs: Int, isForced: Bool = false
  ) throws {
    let stamps = try output.stamps()
    let isUnchanged = state.stamps == stamps
    guard isForced || !isUnchanged || !state.isSettled else { return }
    let stampedMs = isUnchanged ? state.stampedMs : nowMs
    let there = try output.sessions()
    let new = there.filter { !state.isKnown($0) }
    if state.count + new.count > there.count {
      let kept = Set(there)
      let gone = state.all.filter { !kept.contains($0) }
      state.list.apply(gone.map { ($0, nil) })
      state.unlisted.subtract(gone)
      state.recent.removeAll { !kept.contains($0) }
    }
    state.unlisted.formUnion(new)
    check(new[...], &state, in: output)
    let isCoarse = stamps.contains { $0.map { $0.modified % 1_000_000_000 == 0 } ?? false }
    let isSettled = isUnchanged && nowMs - stampedMs > (isCoarse ? longTickMs : tickMs)
    (state.stamps, state.stampedMs, state.isSettled) = (stamps, stampedMs, isSettled)
  }

  /// Checks the indexes of sessions, some at a time: other requests get their turn in between.
  private func check(_ sessions: [SessionID], in output: any ListedOutput) {
    var rest = sessions[...]
    while !rest.isEmpty {
      let part = rest.prefix(Self.atOnce)
      state.withLock { Self.check(part, &$0, in: output) }
      rest.removeFirst(part.count)
    }
  }

  /// Checks the indexes of sessions, and reads those that have changed.
  private static func check(_ sessions: ArraySlice<SessionID>, _ state: inout State, in output: any ListedOutput) {
    // A scan may come to a session that has gone meanwhile.
    let seen = sessions.filter { state.isKnown($0) }.compactMap { change(of: $0, state.list.entries[$0], in: output) }
    guard !seen.isEmpty else { return }
    for (session, now) in seen {
      if now == nil { state.unlisted.insert(session) } else { state.unlisted.remove(session) }
    }
    state.list.apply(seen)
    // Within one check, the times of the indexes order the changes. Beyond it they do not: the clock of a host may be wrong.
    let latest = seen.compactMap { seen in seen.now?.stamp.map { (session: seen.session, ms: $0.modified) } }
      .sorted { $0.ms > $1.ms }.map(\.session)
    state.recent = Array((latest.prefix(recentCount) + state.recent).withoutRepetitions.prefix(recentCount))
  }

  /// Returns a session as it is now; nil if it is as it was known, or if the disk fails. One that was not known is listed with the
  /// disk's error.
  private static func change(
    of session: SessionID, _ known: ListedSessions.Entry?, in output: any ListedOutput
  ) -> ListedSessions.Seen? {
    do {
      guard let stamp = try output.stamp(of: session) else {
        if known == nil { return nil }
        return (session, nil)
      }
      if stamp == known?.stamp { return nil }
      return (session, (stamp, try output.summary(of: session)))
    } catch {
      guard known == nil else { return nil }
      return (session, (nil, SessionSummary(session, error: "\(error)")))
    }
  }
}

extension Sequence where Element: Hashable {
  fileprivate var withoutRepetitions: [Element] {
    var found: Set<Element> = []
    return filter { found.insert($0).inserted }
  }
}
