// Ends sessions: those whose end was requested, once all that was handed in before is published, and those of which nothing came for
// some time. Runs on the worker's loop.

import FileSystem
import FrameBatches
import Logging
import Notifying
import Sessions
import Synchronization
import WorkQueues

final class SessionEnder: Sendable {
  private struct State {
    /// Monotonic milliseconds.
    var nextMs = Int.min
    var nextSearchMs = Int.min
    /// The sessions whose events are on their way.
    var announced: Set<SessionID> = []
    /// Sessions that are to end, and of which nothing is published.
    var unknown: Set<SessionID> = []
    /// Whether a request waits for batches, or failed.
    var isWaiting = false
  }

  /// Maximum number of sessions that end between two looks at the queue.
  private static let limit = 100
  /// Milliseconds for which a request waits for the first publication of its session.
  private static let unknownMs: Int64 = 7 * 86_400_000
  /// Milliseconds to wait for a worker that publishes in a session.
  private static let lockMs = 1_000
  /// Bounds of the milliseconds between two searches for quiet sessions.
  private static let searchMs = 1_000...60_000

  private let store: any WorkerStore
  private let queue: any BatchQueue
  private let quietMs: Int64?
  private let logger: Logger
  private let state = Mutex(State())

  /// - Parameter quietMs: a session ends when nothing of it was published for that long; nil to wait for a request.
  init(_ store: any WorkerStore, _ queue: any BatchQueue, quietMs: Int64?, _ logger: Logger) {
    (self.store, self.queue, self.quietMs, self.logger) = (store, queue, quietMs, logger)
  }

  /// Whether a look at the requests soon may end a session.
  var isWaiting: Bool { state.withLock(\.isWaiting) }

  /// Looks at the requests soon: this process has made one, or has finished the batch that one waits for.
  func expect() { state.withLock { $0.nextMs = .min } }

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
      let found = try searches && quietMs != nil ? requestEndsOfQuietSessions() : 0
      return try looks || found > 0 ? performRequests(announce) : 0
    } catch {
      logger.error("session.failed", metadata: ["error": "\(error)"])
      return 0
    }
  }

  private var searchIntervalMs: Int {
    let quietMs = Int(clamping: quietMs ?? .max)
    return min(max(quietMs / 4, Self.searchMs.lowerBound), Self.searchMs.upperBound)
  }

  /// - Returns: the number of new requests.
  private func requestEndsOfQuietSessions() throws -> Int {
    guard let quietMs, case let sessions = try store.quietSessions(forMs: quietMs), !sessions.isEmpty else { return 0 }
    let owed = try queue.owed(limit: EndRequest.maximumAwaited)
    let known = Set(try store.endRequests())
    var requested = 0
    for session in sessions where !known.contains(session) {
      if try store.requestEnd(EndRequest(session, .quiet, awaiting: owed)) == .requested { requested += 1 }
    }
    return requested
  }

  private func performRequests(
    _ announce: (EndedSession, HeldEndRequest) throws -> Void, isFirst: Bool = true
  ) throws -> Int {
    let announced = state.withLock(\.announced)
    var owed: Set<String>?
    var (ended, tried, isWaiting, isRenewed) = (0, 0, false, false)
    for session in try store.endRequests() where !announced.contains(session) {
      guard tried < Self.limit else {
        isWaiting = true
        break
      }
      let held = try store.takeEndRequest(of: session) { request in
        if request.isClosing {
          isWaiting = true
          if try !queue.isClosing(session) {
            try awaitBatches(of: request)
            isRenewed = true
          }
          return true
        }
        if request.awaited.isEmpty { return false }
        let all = try owed ?? Set(queue.owed(limit: .max))
        owed = all
        let waits = request.awaited.contains(where: all.contains)
        if waits { isWaiting = true }
        return waits
      }
      guard let held else { continue }
      tried += 1
      do {
        if try perform(held, announce) { ended += 1 }
      } catch {
        isWaiting = true
        if error is Cancelled { continue }
        logger.error("session.failed", metadata: ["session": "\(session)", "error": "\(error)"])
      }
    }
    state.withLock { $0.isWaiting = isWaiting }
    // Perhaps nothing keeps these sessions from their end any more. A drain may have no other look.
    return isRenewed && isFirst ? ended + (try performRequests(announce, isFirst: false)) : ended
  }

  /// Lets a request await the batches that are there, now that no picture of its session is in no batch.
  private func awaitBatches(of request: EndRequest) throws {
    let owed = try queue.owed(limit: EndRequest.maximumAwaited)
    _ = try store.requestEnd(
      EndRequest(request.session, request.cause, awaiting: owed, requestedMs: request.requestedMs))
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
  /// Asks for the end of a session, durably: it ends once the batches that were handed in before are finished.
  package func requestEnd(of session: SessionID) throws {
    _ = try store.requestEnd(
      EndRequest(session, .request, awaiting: try queue.owed(limit: EndRequest.maximumAwaited)))
    ends.expect()
  }

  /// Ends the sessions that can end now, and announces that.
  ///
  /// - Parameter now: whether to look for requests even if a look is not due.
  /// - Returns: the number of sessions that have ended.
  @discardableResult
  func endSessions(now: Bool = false) -> Int {
    ends.pass(now: now) { session, held in
      let event = SessionEndedEvent(session)
      write?(event)
      if queue.takesEvents { try queue.announce(key: event.key, event: event.line) }
      if let notifier { return notifier.add(.end(held), event) }
      try store.removeEndRequest(held)
      ends.forget(held.request.session)
    }
  }

  /// Removes the request of an end whose event is delivered, or refused by its receiver. For any thread.
  func finish(_ held: HeldEndRequest, keeping refused: RefusedNotification?) {
    defer { ends.forget(held.request.session) }
    do {
      if let refused { try queue.notifications.add(refused) }
      try store.removeEndRequest(held)
    } catch {
      // The event is sent again.
      logger.error(
        "session.failed", metadata: ["session": "\(held.request.session)", "error": "\(error)"])
    }
  }
}
