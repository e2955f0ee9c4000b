import FileSystem
import Sessions
import Synchronization

/// Lets a few requests at a time do costly work. Some others wait, each while its client is there and for half a minute at most.
/// Clients share the gate: of those that wait, one that does the least passes first; one with the most waiting requests is refused first.
package final class RequestGate<Client: Hashable & Sendable>: Sendable {
  /// Milliseconds between checks of a client's connection, and the longest time for which a request waits.
  private static var times: (checkMs: Int, patienceMs: Int) { (200, 30_000) }

  private final class Turn: Sendable {
    let client: Client
    /// Whether the request may work; nil while it waits.
    let isAdmitted = Monitor<Bool?>(nil)

    init(_ client: Client) { self.client = client }
  }

  private struct State {
    var working: [Client: Int] = [:]
    var workers = 0
    /// In the order of their arrival.
    var waiting: [Turn] = []

    mutating func begin(_ client: Client) {
      workers += 1
      working[client, default: 0] += 1
    }

    mutating func end(_ client: Client) {
      workers -= 1
      let left = (working[client] ?? 1) - 1
      working[client] = left > 0 ? left : nil
    }

    /// Removes the request that works next.
    mutating func next() -> Turn? {
      guard let next = waiting.min(by: { (working[$0.client] ?? 0) < (working[$1.client] ?? 0) }) else { return nil }
      leave(next)
      return next
    }

    /// Makes room for a request of a client.
    ///
    /// - Returns: the last request of another client that waits with more; nil if there is none.
    mutating func surplus(for client: Client) -> Turn? {
      let counts = Dictionary(waiting.map { ($0.client, 1) }, uniquingKeysWith: +)
      let most = counts.values.max() ?? 0
      guard most > (counts[client] ?? 0) + 1, let last = waiting.last(where: { counts[$0.client] == most }) else {
        return nil
      }
      leave(last)
      return last
    }

    /// - Returns: whether the request was waiting.
    @discardableResult mutating func leave(_ turn: Turn) -> Bool {
      guard let index = waiting.firstIndex(where: { $0 === turn }) else { return false }
      waiting.remove(at: index)
      return true
    }
  }

  private let (width, queue): (Int, Int)
  private let state = Mutex(State())

  /// - Parameters:
  ///   - width: the requests that work at the same time.
  ///   - waiting: the most that wait.
  package init(width: Int, waiting: Int) { (self.width, queue) = (width, waiting) }

  /// The requests that wait.
  package var waiting: Int { state.withLock { $0.waiting.count } }

  /// Runs `body` when it is the turn of the request.
  ///
  /// - Parameter isAbandoned: whether the client has closed its connection.
  /// - Throws: ``ServerBusy``, ``ClientGone``, an error of `body`.
  package func pass<R>(
    for client: Client, isAbandoned: () -> Bool = { false }, _ body: () throws -> R
  ) throws -> R {
    try enter(client, isAbandoned)
    defer {
      let next = state.withLock { state in
        state.end(client)
        let next = state.workers < width ? state.next() : nil
        if let next { state.begin(next.client) }
        return next
      }
      next?.isAdmitted.change { $0 = true }
    }
    if isAbandoned() { throw ClientGone() }
    return try body()
  }

  /// Waits until the request may work.
  private func enter(_ client: Client, _ isAbandoned: () -> Bool) throws {
    // It takes no place from others.
    if isAbandoned() { throw ClientGone() }
    let turn = Turn(client)
    let (isQueued, refused) = try state.withLock { state -> (Bool, Turn?) in
      guard state.workers >= width || !state.waiting.isEmpty else {
        state.begin(client)
        return (false, nil)
      }
      let refused = state.waiting.count < queue ? nil : state.surplus(for: client)
      guard state.waiting.count < queue else { throw ServerBusy() }
      state.waiting.append(turn)
      return (true, refused)
    }
    refused?.isAdmitted.change { $0 = false }
    guard isQueued else { return }
    let untilMs = MonotonicClock.milliseconds() + Self.times.patienceMs
    while true {
      let checkMs = MonotonicClock.milliseconds() + Self.times.checkMs
      let isAdmitted = turn.isAdmitted.wait { isAdmitted -> Monitor<Bool?>.CheckResult<Bool?> in
        let leftMs = checkMs - MonotonicClock.milliseconds()
        return isAdmitted != nil || leftMs <= 0 ? .found(isAdmitted) : .wait(ms: leftMs)
      }
      if let isAdmitted {
        if isAdmitted { return }
        throw ServerBusy()
      }
      let isGone = isAbandoned()
      guard isGone || MonotonicClock.milliseconds() >= untilMs else { continue }
      // Otherwise it is admitted or refused at this moment.
      if state.withLock({ $0.leave(turn) }) { throw isGone ? ClientGone() as any Error : ServerBusy() }
    }
  }
}

/// The server does or holds as much as it may.
package protocol BusyError: ClassifiedError {
  /// When a client should try again, in seconds.
  var retryAfterS: Int { get }
}

extension BusyError {
  package var kind: Failure.Kind { .environment }
}

/// Too many requests wait for the same kind of work.
package struct ServerBusy: BusyError {
  package var retryAfterS: Int { 5 }
  package var description: String { "too many requests wait for the same work" }
}

extension StoredListUnread: BusyError {
  package var retryAfterS: Int { 2 }
}
