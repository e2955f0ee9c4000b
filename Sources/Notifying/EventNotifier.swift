// Delivers the events of batches from threads of its own, so that encoding continues while the receiver is away. A batch stays
// claimed until its event is delivered. Events go out in the order of time. After a failure one event at a time tries the
// receiver, with growing pauses. An event that fails alone does not hold up the others.

import FileSystem
import Logging
import Synchronization

/// The counts of a notifier since its start, and the events that wait.
package struct NotificationCounts: Sendable {
  package fileprivate(set) var sent = 0
  /// Attempts that are repeated.
  package fileprivate(set) var failed = 0
  package fileprivate(set) var refused = 0
  package fileprivate(set) var pending = 0

  package init() {}
}

/// Delivers each event until its receiver accepts or refuses it.
///
/// - Parameter Subject: what an event is about, such as a batch that is claimed until its event is delivered.
package final class EventNotifier<Subject: Sendable>: Sendable {
  private struct Pending: Sendable {
    let number: Int
    let subject: Subject
    let event: any Event
    var failures = 0
    /// In monotonic milliseconds, like all times here.
    var notBeforeMs = 0
    var sentMs = 0
  }

  private struct State {
    /// In the order of time.
    var waiting: [Pending] = []
    /// The number of events in delivery.
    var active = 0
    var last = 0
    var counts = NotificationCounts()
    /// Failures in a row, the time of the last one, and its cause.
    var failures = 0
    var failedMs = 0
    var cause: String?
    var resumeMs = 0
    /// The time of the last answer of the receiver, or of the first event after a rest.
    var aliveMs = 0
    var isFull = false
    var isStopped = false

    var pending: Int { waiting.count + active }

    mutating func putBack(_ pending: Pending) {
      waiting.insert(pending, at: waiting.firstIndex { $0.number > pending.number } ?? waiting.endIndex)
    }
  }

  /// Maximum number of events in delivery.
  private static var threads: Int { 4 }
  /// Maximum seconds of a pause that the receiver asks for.
  static var maximumRetryAfterS: Int { 300 }
  /// Failures in a row after which the receiver is at fault, and not the events.
  private static var outage: Int { 3 }

  private let receiver: any EventReceiver
  /// Maximum number of batches that wait for the delivery of their events.
  private let limit: Int
  /// Seconds without an answer after which a drain gives up.
  private let timeoutS: Int
  private let state = Monitor(State())
  private let group = Mutex(ThreadGroup())

  package init(_ receiver: any EventReceiver, limit: Int, timeoutS: Int) {
    (self.receiver, self.limit, self.timeoutS) = (receiver, limit, timeoutS)
  }

  package var counts: NotificationCounts {
    state.read { state in
      var counts = state.counts
      counts.pending = state.pending
      return counts
    }
  }

  package var isIdle: Bool { state.read { $0.pending == 0 } }
  /// Whether no batch may be added. After it was full, a quarter of the room has to be free.
  package var isFull: Bool { state.read(\.isFull) }
  package var isFailing: Bool { state.read { $0.failures > 0 } }

  /// The reason why no new batch is begun; nil while there is room for more events.
  package var trouble: String? {
    state.read { state in
      guard state.isFull else { return nil }
      let cause = state.cause.map { " (\($0))" } ?? ""
      let waiting = "\(count(state.pending, "batch waits", "batches wait")) for \(receiver.name) to take their events"
      return "\(waiting), the limit of --notify-pending\(cause)"
    }
  }

  /// A remark for people while the receiver fails; nil otherwise.
  package var remark: String? {
    state.read { state in
      state.cause.map { "\(receiver.name) takes no events (\($0)); \(state.pending) wait" }
    }
  }

  /// The failure of a drain that waits for the receiver only; nil while there is hope.
  package var surrender: Failure? {
    state.read { state in
      guard state.pending > 0, MonotonicClock.milliseconds() - state.aliveMs >= 1_000 * timeoutS else { return nil }
      return Failure(
        .environment,
        "\(receiver.name) took no event for \(timeoutS) s, the limit of --notify-timeout (\(state.cause ?? "no answer"))",
        advice: "\(count(state.pending, "batch is", "batches are")) put back")
    }
  }

  /// Adds an event. The caller has claimed its batch.
  package func add(_ subject: Subject, _ event: any Event) {
    state.change { state in
      if state.pending == 0 { state.aliveMs = MonotonicClock.milliseconds() }
      state.last += 1
      state.waiting.append(Pending(number: state.last, subject: subject, event: event))
      if state.pending >= limit { state.isFull = true }
    }
  }

  /// Starts the threads.
  ///
  /// - Parameters:
  ///   - wake: called after each delivery.
  ///   - settle: called on one of the threads after the answer of the receiver. Retires a batch, after it has kept the refused
  ///     event.
  package func start(
    _ logger: Logger, wake: @escaping @Sendable () -> Void,
    _ settle: @escaping @Sendable (Subject, RefusedNotification?) -> Void
  ) throws(DiskError) {
    try group.withLock { (group) throws(DiskError) in
      for _ in 0..<Self.threads {
        try group.start { [self] in
          while let pending = next() {
            deliver(pending, logger, settle)
            wake()
          }
        }
      }
    }
  }

  /// Ends the threads. Cancels deliveries, within a second or so.
  ///
  /// - Returns: the subjects of the events that are not delivered, in the order of time.
  package func stop() -> [Subject] {
    state.change { $0.isStopped = true }
    group.withLock { $0.join() }
    return state.change { state in
      defer { state.waiting = [] }
      return state.waiting.map(\.subject)
    }
  }

  private func next() -> Pending? {
    state.wait { state in
      if state.isStopped { return .found(nil) }
      // An event that fails is tried alone.
      if state.failures > 0 && state.active > 0 { return .wait(ms: nil) }
      let nowMs = MonotonicClock.milliseconds()
      if nowMs < state.resumeMs { return .wait(ms: state.resumeMs - nowMs) }
      guard let index = state.waiting.firstIndex(where: { $0.notBeforeMs <= nowMs }) else {
        return .wait(ms: state.waiting.map(\.notBeforeMs).min().map { $0 - nowMs })
      }
      state.active += 1
      var pending = state.waiting.remove(at: index)
      pending.sentMs = nowMs
      return .found(pending)
    }
  }

  private func deliver(
    _ pending: Pending, _ logger: Logger, _ settle: (Subject, RefusedNotification?) -> Void
  ) {
    let event = pending.event
    let result = receiver.send(
      key: event.key, event: event.line, traceParent: event.traceParent,
      cancellation: Cancellation { [state] in state.read(\.isStopped) })
    let about = event.about.merging(["key": "\(event.key)"]) { $1 }
    switch result {
    case .accepted:
      recordAnswer(logger)
      logger.debug("notification.sent", metadata: about)
      settle(pending.subject, nil)
      finish { $0.counts.sent += 1 }
    case .refused(let cause):
      recordAnswer(logger)
      logger.error("notification.refused", metadata: about.merging(["reason": "\(cause)"]) { $1 })
      settle(pending.subject, RefusedNotification(key: event.key, event: event.line, cause: cause))
      finish { $0.counts.refused += 1 }
    case .failed(let cause, let retryAfterS):
      let pauseMs = recordFailure(of: pending, cause, retryAfterS: retryAfterS)
      let facts: Logger.Metadata = ["error": "\(cause)", "retryInS": .stringConvertible((pauseMs + 999) / 1_000)]
      logger.warning("notification.failed", metadata: about.merging(facts) { $1 })
    case .cancelled: finish { $0.putBack(pending) }
    }
  }

  /// Ends a delivery. Until then the event counts as pending: its batch is still claimed.
  private func finish(_ change: (inout State) -> Void) {
    state.change { state in
      state.active -= 1
      change(&state)
      if state.pending <= limit * 3 / 4 { state.isFull = false }
    }
  }

  private func recordAnswer(_ logger: Logger) {
    let hadFailed = state.change { state in
      state.aliveMs = MonotonicClock.milliseconds()
      // After an outage all events go out at once, in their order.
      if state.failures >= Self.outage { for index in state.waiting.indices { state.waiting[index].notBeforeMs = 0 } }
      defer { (state.failures, state.resumeMs, state.cause) = (0, 0, nil) }
      return state.failures >= Self.outage
    }
    if hadFailed { logger.notice("notification.recovered") }
  }

  /// - Returns: the pause in milliseconds.
  private func recordFailure(of pending: Pending, _ cause: String, retryAfterS: Int?) -> Int {
    var pending = pending
    pending.failures += 1
    return state.change { state in
      let nowMs = MonotonicClock.milliseconds()
      // Of several deliveries at once, the first failure counts.
      if pending.sentMs >= state.failedMs { state.failures += 1 }
      (state.failedMs, state.cause) = (nowMs, cause)
      let askedMs = 1_000 * min(max(retryAfterS ?? 0, 0), Self.maximumRetryAfterS)
      let pauseMs = max(askedMs, BackOff.pauseMs(failures: state.failures))
      state.resumeMs = nowMs + pauseMs
      // The next attempt is that of another event: this one may be the cause.
      pending.notBeforeMs = state.resumeMs + (state.waiting.isEmpty ? 0 : BackOff.pauseMs(failures: pending.failures))
      state.counts.failed += 1
      state.active -= 1
      state.putBack(pending)
      return pauseMs
    }
  }
}
