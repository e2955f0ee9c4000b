// The messages that this worker holds. SQS does not say reliably that another worker has a message by now: the handle of an older
// delivery goes on to work. So the time decides. A message that this worker has not renewed within the lease is lost.

import FileSystem
import Synchronization

/// The messages of one worker; for several threads.
final class HeldMessages: Sendable {
  struct Held: Sendable {
    let message: SQSReceipt
    let receivedAtMs: Int
    var untilMs: Int
    /// Whether the store has notes on the message.
    var hasNotes = false
    /// Whether the delivery counts as an attempt.
    var hasBegun = true
    /// The reason why the last renewal failed; nil if it succeeded.
    var failure: String?
  }

  /// SQS hides a message for twelve hours at most, from its delivery on.
  static let maximumLeaseS = 43_200
  private static let renewedAtOnce = 10
  private static let maximumLost = 1_000

  private let queue: SQSActions
  private let leaseS: Int
  private let clock: @Sendable () -> Int
  private let state = Mutex(State())

  private struct State {
    var held: [String: Held] = [:]
    var last = 0
    /// Lost because their renewals failed.
    var lost: [Held] = []

    /// Drops a claim whose lease has ended.
    mutating func lose(_ id: String) {
      guard let held = held.removeValue(forKey: id), held.failure != nil, lost.count < HeldMessages.maximumLost else {
        return
      }
      lost.append(held)
    }
  }

  /// - Parameter clock: a monotonic clock, in milliseconds.
  init(of queue: SQSActions, leaseS: Int, clock: @escaping @Sendable () -> Int) {
    (self.queue, self.leaseS, self.clock) = (queue, leaseS, clock)
  }

  /// Holds a message.
  ///
  /// - Parameter sentAtMs: the time of the request that received it.
  /// - Returns: the ID of the claim.
  func hold(_ message: SQSReceipt, sentAtMs: Int) -> String {
    state.withLock { state in
      state.last += 1
      // The queue may deliver a message again before its lease ends.
      let id = "\(message.id):\(state.last)"
      state.held[id] = Held(message: message, receivedAtMs: sentAtMs, untilMs: sentAtMs + 1_000 * leaseS)
      return id
    }
  }

  /// The message of a claim; nil if this worker has lost it.
  subscript(id: String) -> Held? {
    let now = clock()
    return state.withLock { state in
      guard let held = state.held[id], now < held.untilMs else {
        state.lose(id)
        return nil
      }
      return held
    }
  }

  var count: Int {
    let now = clock()
    return state.withLock { $0.held.values.count { now < $0.untilMs } }
  }

  func change(_ id: String, _ body: (inout Held) -> Void) {
    state.withLock { state in
      guard var held = state.held[id] else { return }
      body(&held)
      state.held[id] = held
    }
  }

  func drop(_ id: String) { state.withLock { $0.held[id] = nil } }

  /// Returns the messages that were lost because their renewals failed, each once.
  func takeLost() -> [Held] {
    let now = clock()
    return state.withLock { state in
      for id in state.held.filter({ now >= $0.value.untilMs }).keys { state.lose(id) }
      defer { state.lost = [] }
      return state.lost
    }
  }

  /// Renews the lease of a message now, and drops the message if it is lost.
  ///
  /// - Throws: ``SQSError``; then it is unknown whether the lease is renewed.
  func renew(_ id: String) throws {
    if let held = self[id] { try renew(atOnce: [(id, held)]) }
  }

  /// Renews the leases that have less than two thirds of their time left, the one that ends first before the others.
  ///
  /// - Returns: whether there were any.
  /// - Throws: the first error, after all have been tried.
  func renewDue() throws -> Bool {
    let now = clock()
    let due = state.withLock { $0.held.filter { $0.value.untilMs - now < 2_000 * leaseS / 3 } }
      .sorted { $0.value.untilMs < $1.value.untilMs }.map(\.key)
    var first: (any Error)?
    for start in stride(from: 0, to: due.count, by: Self.renewedAtOnce) {
      do {
        try renew(atOnce: due[start...].prefix(Self.renewedAtOnce).compactMap { id in self[id].map { (id, $0) } })
      } catch {
        first = first ?? error
      }
    }
    if let first { throw first }
    return !due.isEmpty
  }

  private func renew(atOnce messages: [(id: String, held: Held)]) throws {
    let sentAtMs = clock()
    let renewed = messages.compactMap { id, held -> (id: String, handle: String, seconds: Int)? in
      // Without any time left, the lease that runs is the last one.
      let left = Self.maximumLeaseS - (sentAtMs - held.receivedAtMs) / 1_000 - 1
      return left > 0 ? (id, held.message.handle, min(leaseS, left)) : nil
    }
    guard !renewed.isEmpty else { return }
    let outcomes: [Bool?]
    do {
      outcomes = try queue.hide(renewed.map { ($0.handle, $0.seconds) })
    } catch {
      for message in renewed { change(message.id) { $0.failure = "\(error)" } }
      throw error
    }
    for (message, isHidden) in zip(renewed, outcomes) {
      switch isHidden {
      case true?: change(message.id) { ($0.untilMs, $0.failure) = (sentAtMs + 1_000 * message.seconds, nil) }
      case false?: drop(message.id)
      case nil: change(message.id) { $0.failure = "the queue has not renewed the lease" }
      }
    }
  }
}
