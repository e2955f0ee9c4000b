// The messages that this worker holds. SQS does not say reliably that another worker has a message by now: the handle of an older
// delivery goes on to work. So the time decides. A message that this worker has not renewed within the lease is lost.

import FileSystem
import Synchronization

/// The messages of one worker; for several threads.
final class HeldMessages: Sendable {
  struct Held: Sendable {
    let message: SQSMessage
    let receivedAtMs: Int
    var untilMs: Int
    /// Whether the store has notes on the message.
    var hasNotes = false
    var hasBegun = true
  }

  /// SQS hides a message for twelve hours at most, from its delivery on.
  static let maximumLeaseS = 43_200
  private static let renewedAtOnce = 10

  private let queue: SQSActions
  private let leaseS: Int
  private let clock: @Sendable () -> Int
  private let state = Mutex((held: [String: Held](), last: 0))

  /// - Parameter clock: a monotonic clock, in milliseconds.
  init(of queue: SQSActions, leaseS: Int, clock: @escaping @Sendable () -> Int) {
    (self.queue, self.leaseS, self.clock) = (queue, leaseS, clock)
  }

  /// Holds a message.
  ///
  /// - Parameter sentAtMs: the time of the request that received it.
  /// - Returns: the ID of the claim.
  func hold(_ message: SQSMessage, sentAtMs: Int) -> String {
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
        state.held[id] = nil
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

  /// Renews the leases of messages, and drops those that are lost.
  ///
  /// - Parameter ids: nil for all.
  /// - Throws: ``SQSError``; then it is unknown which leases are renewed.
  func renew(_ ids: [String]? = nil) throws {
    let all = state.withLock { state in (ids ?? Array(state.held.keys)).sorted() }
    for start in stride(from: 0, to: all.count, by: Self.renewedAtOnce) {
      try renew(atOnce: all[start...].prefix(Self.renewedAtOnce).compactMap { id in self[id].map { (id, $0) } })
    }
  }

  private func renew(atOnce messages: [(id: String, held: Held)]) throws {
    let sentAtMs = clock()
    let renewed = messages.compactMap { id, held -> (id: String, handle: String, seconds: Int)? in
      // Without any time left, the lease that runs is the last one.
      let left = Self.maximumLeaseS - (sentAtMs - held.receivedAtMs) / 1_000 - 1
      return left > 0 ? (id, held.message.handle, min(leaseS, left)) : nil
    }
    guard !renewed.isEmpty else { return }
    let outcomes = try queue.hide(renewed.map { ($0.handle, $0.seconds) })
    for (message, isHidden) in zip(renewed, outcomes) {
      switch isHidden {
      case true?: change(message.id) { $0.untilMs = sentAtMs + 1_000 * message.seconds }
      case false?: drop(message.id)
      case nil: break
      }
    }
  }
}
