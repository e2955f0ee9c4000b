// Ends sessions: those whose end was requested, once all that was handed in before is published, and those of which nothing came for
// some time. Runs on the worker's loop.

import FileSystem
import FrameBatches
import Logging
import Notifying
import Sessions
import Synchronization
import WorkQueues

/// The ends that a worker owes: those that wait for batches, or failed.
package struct OwedEnds: Sendable {
  package var count = 0
  /// Milliseconds since the oldest of them was first seen.
  package var oldestMs = 0
}

final class SessionEnder: Sendable {
  private struct State {
    /// Monotonic milliseconds.
    var nextMs = Int.min
    var nextSearchMs = Int.min
    /// The sessions whose events are on their way.
    var announced: Set<SessionID> = []
    /// Sessions that are to end, and of which nothing is published.
    var unknown: Set<SessionID> = []
    /// The batches for which requests wait.
    var awaited = AwaitedBatches()
    /// The sessions of which nothing came for some time. No request is written before they can end: the next process finds them, too.
    var quiet: [SessionID: EndRequest] = [:]
    /// The sessions whose end failed, and the last error of each.
    var failed: [SessionID: String] = [:]
    /// The session that the last look tried last.
    var last: SessionID?
    var owed = OwedEnds()
  }

  /// Maximum number of sessions that a look tries to end, and the milliseconds after which it tries no more.
  private static let (limit, triedMs) = (100, 5_000)
  /// Milliseconds for which a request waits for the first publication of its session.
  private static let unknownMs: Int64 = 7 * 86_400_000
  /// Milliseconds to wait for a worker that publishes in a session.
  private static let lockMs = 1_000
  /// Bounds of the milliseconds between two searches for quiet sessions.
  private static let searchMs = 1_000...60_000

  private let store: any WorkerStore
  private let queue: any BatchQueue
  private let quietMs: Int64?
  private let longMs: Int
  private let logger: Logger
  private let state = Mutex(State())

  /// - Parameters:
  ///   - quietMs: a session ends when nothing of it was published for that long; nil to wait for a request.
  ///   - longMs: an end that is owed for that long is logged once.
  init(_ store: any WorkerStore, _ queue: any BatchQueue, quietMs: Int64?, longMs: Int = 60_000, _ logger: Logger) {
    (self.store, self.queue, self.quietMs, self.longMs, self.logger) = (store, queue, quietMs, longMs, logger)
  }

  /// Whether a look at the requests soon may end a session.
  var isWaiting: Bool { owed.count > 0 }

  /// The ends that the last look has left.
  var owed: OwedEnds { state.withLock(\.owed) }

  /// Looks at the requests soon: this process has made one, or has finished the batch that one waits for.
  func expect() { state.withLock { $0.nextMs = .min } }

  /// Notes the sessions of a batch in work: the ends of others do not wait for it.
  func note(_ batch: String, of sessions: [SessionID]) {
    state.withLock { $0.awaited.note(batch, of: sessions) }
  }

  /// Forgets a batch before it leaves this worker: another one may have its name then.
  func forget(batch: String) { state.withLock { $0.awaited.forget(batch) } }

  /// Notes that an event was delivered, or is given up.
  func forget(_ session: SessionID) { state.withLock { state in _ = state.announced.remove(session) } }

  /// Ends the sessions that can end now.
  ///
  /// - Parameters:
  ///   - now: whether to look even if a look is not due.
  ///   - announce: announces an end. The request stays until ``EndingStore/removeEndRequest(_:)``.
  /// - Returns: the number of sessions that have ended.
  @discardableResult
  func pass(now: Bool = false, announce: (EndedSession, HeldEndRequest) throws -> Void) -> Int {
    let nowMs = MonotonicClock.milliseconds()
    let (looks, searches) = state.withLock { state in
      let due = (now || nowMs >= state.nextMs, nowMs >= state.nextSearchMs)
      if due.0 { state.nextMs = nowMs + store.endScanMs }
      if due.1 { state.nextSearchMs = nowMs + searchIntervalMs }
      return due
    }
    do {
      let found = try searches && findQuietSessions()
      return try looks || found ? performRequests(announce) : 0
    } catch {
      logger.error("session.failed", metadata: ["error": "\(error)"])
      return 0
    }
  }

  private var searchIntervalMs: Int {
    let quietMs = Int(clamping: quietMs ?? .max)
    return min(max(quietMs / 4, Self.searchMs.lowerBound), Self.searchMs.upperBound)
  }

  /// - Returns: whether there are any.
  private func findQuietSessions() throws -> Bool {
    guard let quietMs else { return false }
    let found = try store.quietSessions(forMs: quietMs)
    state.withLock { state in
      state.quiet = Dictionary(
        uniqueKeysWithValues: found.map { ($0, state.quiet[$0] ?? EndRequest($0, .quiet, awaitsAll: true)) })
    }
    return !found.isEmpty
  }

  private func performRequests(_ announce: (EndedSession, HeldEndRequest) throws -> Void) throws -> Int {
    let (requests, closing) = try requests()
    // The queue is listed once, after the requests: each batch that came before one of them is in the list.
    let isOpen = state.withLock { $0.awaited.begin(requests, nowMs: MonotonicClock.milliseconds()) }
    let batches = isOpen ? try queue.owed(limit: .max) : []
    let waiting = state.withLock { $0.awaited.waiting(for: batches) }
    let free = inTurn(requests.filter { waiting[$0.session] == nil })
    let startMs = MonotonicClock.milliseconds()
    var (ended, owed) = (0, closing)
    for (tried, request) in free.enumerated() {
      guard tried < Self.limit, MonotonicClock.milliseconds() - startMs < Self.triedMs else {
        owed += free[tried...].map(\.session)
        break
      }
      state.withLock { $0.last = request.session }
      do {
        if let held = try take(request), try perform(held, announce) { ended += 1 }
        state.withLock { $0.failed[request.session] = nil }
      } catch {
        owed.append(request.session)
        report(error, endOf: request.session)
      }
    }
    report(owed: owed, waiting)
    return ended
  }

  /// Returns the requests that this process may perform once they wait no more, and the sessions of which pictures are in no batch yet.
  private func requests() throws -> ([EndRequest], closing: [SessionID]) {
    let (announced, quiet) = state.withLock { ($0.announced, $0.quiet) }
    var (found, closing): ([SessionID: EndRequest?], [SessionID]) = ([:], [])
    for session in try store.endRequests() where !announced.contains(session) {
      do {
        let request = try store.endRequest(of: session) ?? state.withLock { $0.awaited.request(of: session) }
        let isClosing = try request?.awaitsAll == true && queue.isClosing(session)
        if isClosing { closing.append(session) }
        found[session] = .some(isClosing ? nil : request)
      } catch let damaged as DamagedOutput {
        // It does not hold up the others.
        found[session] = .some(nil)
        report(damaged, endOf: session)
      }
    }
    for (session, request) in quiet where found[session] == nil && !announced.contains(session) {
      found[session] = request
    }
    state.withLock { state in
      state.failed = state.failed.filter { found[$0.key] != nil }
      state.unknown = state.unknown.filter { found[$0] != nil }
    }
    return (found.values.compactMap { $0 }, closing)
  }

  /// Puts requests into the order in which they are tried: those behind the last one first, because each look tries some only.
  private func inTurn(_ requests: [EndRequest]) -> [EndRequest] {
    let last = state.withLock { $0.last?.description ?? "" }
    let sorted = requests.sorted { $0.session.description < $1.session.description }
    let next = sorted.firstIndex { $0.session.description > last } ?? 0
    return Array(sorted[next...] + sorted[..<next])
  }

  /// Takes a request that waits no more, unless a newer one has replaced it. The one of a quiet session is written now.
  private func take(_ request: EndRequest) throws -> HeldEndRequest? {
    var request = request
    if state.withLock({ $0.quiet.removeValue(forKey: request.session) }) == request {
      request = EndRequest(request.session, .quiet)
      guard try store.requestEnd(request) == .requested else { return nil }
    }
    return try store.takeEndRequest(of: request.session) { $0 != request }
  }

  /// Logs an error once.
  private func report(_ error: any Error, endOf session: SessionID) {
    if error is Cancelled { return }
    let text = "\(error)"
    if state.withLock({ $0.failed.updateValue(text, forKey: session) }) == text { return }
    logger.error("session.failed", metadata: ["session": "\(session)", "error": "\(text)"])
  }

  /// Notes the ends that are owed, and logs each once when it is owed for long.
  private func report(owed sessions: [SessionID], _ waiting: [SessionID: String]) {
    let nowMs = MonotonicClock.milliseconds()
    let all = sessions + waiting.keys
    let long = state.withLock { state in
      let oldestMs = all.map { state.awaited.ageMs(of: $0, nowMs: nowMs) }.max() ?? 0
      state.owed = OwedEnds(count: all.count, oldestMs: oldestMs)
      return state.awaited.unreported(waiting.keys, olderThanMs: longMs, nowMs: nowMs)
    }
    guard let first = long.first, let batch = waiting[first] else { return }
    logger.warning(
      "session.waiting",
      metadata: [
        "session": "\(first)", "batch": "\(batch)", "sessions": .stringConvertible(long.count),
        "advice": "see why the batch is not finished: an end waits for the batches that were handed in before",
      ])
  }

  /// - Returns: whether the session has ended.
  private func perform(
    _ held: HeldEndRequest, _ announce: (EndedSession, HeldEndRequest) throws -> Void
  ) throws -> Bool {
    let request = held.request
    let about: Logger.Metadata = ["session": "\(request.session)", "cause": "\(request.cause.rawValue)"]
    do {
      let outcome = try store.end(
        request.session, request.cause, ifQuietForMs: request.cause == .quiet ? quietMs : nil,
        cancellation: .never.or(afterMs: Self.lockMs))
      switch outcome {
      case .ended(let session):
        logger.info("session.ended", metadata: about)
        state.withLock { state in
          state.unknown.remove(request.session)
          state.announced.insert(request.session)
        }
        do {
          try announce(session, held)
        } catch {
          forget(request.session)
          throw error
        }
        return true
      case .goesOn: break
      case .unknown:
        // Its first batch may be on its way: at a sender that has no network, or in quarantine.
        let isFirst = state.withLock { $0.unknown.insert(request.session).inserted }
        if isFirst { logger.warning("session.unknown", metadata: about) }
        if WallClock.nowMs - request.requestedMs < Self.unknownMs { return false }
      }
    } catch is SessionDeleted {
      // Nobody has to know that it has ended.
    }
    try store.removeEndRequest(held)
    return false
  }
}

extension Worker {
  /// The ends of sessions that the last look has left.
  package var owedEnds: OwedEnds { ends.owed }

  /// Asks for the end of a session, durably: it ends once the batches that were handed in before are finished.
  package func requestEnd(of session: SessionID) throws -> EndState {
    if case .alreadyEnded = try store.requestEnd(EndRequest(session, .request, awaitsAll: true)) { return .ended }
    ends.expect()
    return try store.knows(session) || queue.isClosing(session) || !queue.owed(limit: 1).isEmpty ? .ending : .unknown
  }

  /// Ends the sessions that can end now, and announces that.
  ///
  /// - Parameter now: whether to look for requests even if a look is not due.
  /// - Returns: the number of sessions that have ended.
  @discardableResult
  func endSessions(now: Bool = false) -> Int {
    ends.pass(now: now) { session, held in
      let event = SessionEvent(ended: session)
      write?(event)
      if queue.takesEvents { try queue.announce(key: event.key, event: event.line) }
      exports?.note(session)
      if let notifier { return notifier.add(.end(held), event) }
      finish(held, keeping: nil)
    }
  }

  /// Removes the request of an end whose event is delivered, or refused by its receiver. For any thread.
  func finish(_ held: HeldEndRequest, keeping refused: RefusedNotification?) {
    do {
      if let refused { try queue.notifications.add(refused) }
      if exports?.add(held) != true { complete(held) }
    } catch {
      ends.forget(held.request.session)
      // The event is sent again.
      logger.error(
        "session.failed", metadata: ["session": "\(held.request.session)", "error": "\(error)"])
    }
  }

  /// Removes the request of an end, after all that follows from the end. For any thread.
  func complete(_ held: HeldEndRequest) {
    defer { ends.forget(held.request.session) }
    do {
      try store.removeEndRequest(held)
      compaction?.add(held.request.session)
    } catch {
      // The event is sent again.
      logger.error(
        "session.failed", metadata: ["session": "\(held.request.session)", "error": "\(error)"])
    }
  }
}
