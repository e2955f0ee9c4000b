// Names of batches in a queue of Amazon SQS. A message that a worker has received is hidden from others for a lease. The worker renews
// it; a message that nobody renews comes back. The store decides, so a message that comes twice costs time, and nothing else.
//
// A message is a name, or a notification of an object store. The attempts of a batch are noted in the store, from its second delivery on.
// The queue's own policy decides about its dead letters: the batches that cannot be encoded are in the store's quarantine/.

import FileSystem
import FrameBatches
import Sessions
import Synchronization
import WorkQueues

/// A queue of batches in SQS; for several threads.
package final class SQSQueue: NameQueue {
  /// A message that names a batch.
  private struct Delivery {
    /// Of the claim.
    let id: String
    let name: String
  }

  private struct State {
    /// Deliveries whose notes could not be read yet.
    var unread: [Delivery] = []
    /// Batches whose last worker did not finish them, for ``takeOver()``.
    var recovered: [Claim] = []
    var receives: ReceiveHistory
  }

  /// Messages of dead workers that wait for ``takeOver()``; further ones are worked on as they come.
  private static let maximumRecovered = 16
  /// Messages without a batch that one call removes. Then the worker pauses: they may never end.
  private static let maximumUseless = 200

  private let queue: SQSActions
  private let place: ObjectPlace
  private let notes: AttemptNoteStore
  private let leaseS: Int
  private let drains: Bool
  private let waitS: Int
  private let probeAfterMs: Int
  private let clock: @Sendable () -> Int
  private let useless: UselessMessages
  private let held: HeldMessages
  let renewal: LeaseRenewal
  private let renewals: PeriodicThread?
  private let state: Mutex<State>

  /// Finds the queue, and, for a worker, checks that it can be read.
  ///
  /// - Parameters:
  ///   - objects: the store of the batches.
  ///   - place: where in its bucket.
  ///   - role: what this process does with the queue.
  ///   - lease: seconds without renewal after which SQS gives a message to other workers.
  ///   - waitS: seconds that a receive waits for a message. A worker that stops waits for it, too.
  ///   - probeAfterMs: milliseconds for which a count of zero is believed. The counts of SQS lag.
  ///   - clock: a monotonic clock, in milliseconds.
  ///   - warn: called with a line for the log when a message is of no use.
  /// - Throws: ``SQSError``, ``Failure``.
  init(
    _ client: SQSClient, objects: any ObjectClient, place: ObjectPlace, role: QueueRole, lease: Int,
    waitS: Int = 2, probeAfterMs: Int = 0, clock: @escaping @Sendable () -> Int = { MonotonicClock.milliseconds() },
    warn: @escaping @Sendable (String) -> Void
  ) throws {
    let queue = try SQSActions(client)
    let held = HeldMessages(of: queue, leaseS: lease, clock: clock)
    (self.queue, self.place, self.held) = (queue, place, held)
    let notes = AttemptNoteStore(objects: objects)
    let renewal = LeaseRenewal(of: held, client.address, notes, warn: warn)
    (self.notes, self.renewal) = (notes, renewal)
    useless = UselessMessages(of: queue, place, clock: clock, warn: warn)
    (leaseS, self.probeAfterMs, self.clock) = (lease, probeAfterMs, clock)
    // The lease may begin when the receive does.
    self.waitS = min(waitS, lease / 4)
    drains = role == .worker(drains: true)
    state = Mutex(State(receives: ReceiveHistory(atMs: clock())))
    if role == .producer {
      renewals = nil
    } else {
      // Often, so that a failed renewal is repeated soon. Most runs find no lease that is due.
      renewals = try PeriodicThread("lease", everyMs: max(100, 1_000 * lease / 12)) { renewal.run() }
      _ = try counts()
      try queue.checkHiding()
    }
  }

  // MARK: counts

  /// SQS's counts are approximate, and lag by up to a minute.
  package func waitingCount() throws -> Int {
    let counts = try counts()
    return counts.waiting + counts.delayed
  }

  package func heldElsewhereCount() throws -> Int { max(0, try counts().inFlight - held.count) }

  package var heldCount: Int { held.count }

  /// A drain ends after several receives without a message, and counts of zero.
  package func claimableCount() throws -> Int {
    let now = clock()
    let (probes, known) = state.withLock { state in
      (state.receives.probes(drains: drains, afterMs: probeAfterMs, atMs: now), state.receives.waiting(atMs: now))
    }
    let waiting = try probes.replacesCounts ? 0 : known ?? counts().waiting
    return state.withLock { state in
      let count = waiting > 0 ? waiting : probes.count
      let isOver = drains && state.receives.foundNothing
      return state.receives.offer(isOver ? state.receives.drainable(isFIFO: queue.address.isFIFO) : count)
    }
  }

  /// Returns the state of a queue, without a message of it. It does not tell how old its messages are.
  ///
  /// - Throws: ``SQSError``, ``Failure``.
  static func status(of client: SQSClient) throws -> NameQueueStatus {
    let counts = try SQSActions(client).counts()
    return NameQueueStatus(
      waiting: QueueDepth(count: counts.waiting + counts.delayed, oldestMs: nil),
      claimed: QueueDepth(count: counts.inFlight, oldestMs: nil), isApproximate: true)
  }

  private func counts() throws -> SQSActions.Counts {
    let counts = try queue.counts()
    let now = clock()
    state.withLock { $0.receives.note(waiting: counts.waiting, delayed: counts.delayed, atMs: now) }
    return counts
  }

  // MARK: claims

  package func next() throws -> Claim? {
    renewal.takeAttemptsBack()
    let mayReceive = state.withLock { $0.receives.take() }
    for _ in 0..<Self.maximumUseless {
      if let delivery = state.withLock({ $0.unread.popLast() }) {
        if let claim = try claim(delivery) { return claim }
        continue
      }
      guard mayReceive, let (message, sentAtMs) = try receive() else { return nil }
      guard let name = try name(of: message) else { continue }
      let id = held.hold(message.receipt, sentAtMs: sentAtMs)
      if let claim = try claim(Delivery(id: id, name: name)) { return claim }
    }
    return nil
  }

  /// Returns the claim of a batch; nil if it is set aside, or lost by now.
  private func claim(_ delivery: Delivery) throws -> Claim? {
    guard let message = held[delivery.id]?.message else { return nil }
    var fresh = Claim(
      id: delivery.id, name: delivery.name, attempt: 1, failures: 0, traceParent: message.traceParent)
    fresh.arrivedMs = message.sentMs
    guard message.receiveCount > 1 else { return fresh }
    held.change(delivery.id) { $0.hasBegun = false }
    do {
      let known = try notes.read(message.id)
      held.change(delivery.id) { $0.hasNotes = known != nil }
      let found = known ?? AttemptNotes()
      let claim = fresh.with(attempt: found.attempts, failures: found.failures)
      // The last worker may have died of it: so it is worked on alone.
      let isSetAside = state.withLock { state in
        guard found.attempts > 0, state.recovered.count < Self.maximumRecovered else { return false }
        state.recovered.append(claim)
        return true
      }
      return isSetAside ? nil : try begin(claim)
    } catch {
      // The store does not answer. The message stays held, so that this is no attempt.
      state.withLock { $0.unread.append(delivery) }
      throw error
    }
  }

  /// Returns the messages that ``next()`` has set aside: they had been delivered before.
  package func takeOver() throws -> [Claim] {
    let claims = state.withLock { state in
      defer { state.recovered = [] }
      return state.recovered
    }
    return claims.filter { holds($0.id) }
  }

  private func receive() throws -> (SQSMessage, sentAtMs: Int)? {
    let sentAtMs = clock()
    var hasMessage: Bool?
    state.withLock { $0.receives.begin() }
    defer {
      let now = clock()
      state.withLock { $0.receives.end(hasMessage: hasMessage, atMs: now) }
    }
    let message = try queue.receive(leaseS: leaseS, waitS: waitS)
    hasMessage = message != nil
    return message.map { ($0, sentAtMs) }
  }

  /// Returns the batch that a message names; nil for a message that is dealt with.
  private func name(of message: SQSMessage) throws -> String? {
    switch message.content(in: place) {
    case .name(let name): return name
    case .unusable(let fault):
      try useless.refuse(message, fault)
      return nil
    case .notified(let batches):
      useless.note(batches, of: message)
      if batches.names.count == 1 { return batches.names[0] }
      // A message is one claim. A crash before the removal leaves the names twice.
      _ = try add(batches.names, traceParent: message.receipt.traceParent)
      try queue.delete(message.receipt)
      return nil
    }
  }

  package func begin(_ claim: Claim) throws -> Claim? {
    let begun = claim.with(attempt: claim.attempt + 1)
    guard try note(begun) else { return nil }
    held.change(claim.id) { $0.hasBegun = true }
    return begun
  }

  package func fail(_ claim: Claim) throws -> Claim? {
    let failed = claim.with(failures: claim.failures + 1)
    return try note(failed) ? failed : nil
  }

  package func forgive(_ claim: Claim) throws -> Claim? {
    let forgiven = claim.with(attempt: 1)
    return try note(forgiven) ? forgiven : nil
  }

  package func handBack(_ claim: Claim) throws {
    guard let message = held[claim.id] else { return }
    let before = claim.with(attempt: max(0, claim.attempt - 1))
    guard try !message.hasBegun || note(before) else { return }
    try queue.show(message.message)
    held.drop(claim.id)
    forgetCounts()
  }

  package func acknowledge(_ claim: Claim) throws {
    guard let message = held[claim.id] else { return }
    try queue.delete(message.message)
    held.drop(claim.id)
    // Notes that stay cost a few bytes; a rule of the bucket removes them.
    if message.hasNotes { try? notes.remove(message.message.id) }
    // The next message of its group waits now.
    if drains, queue.address.isFIFO { forgetCounts() }
  }

  /// The reason is in the store's quarantine/.
  package func deadLetter(_ claim: Claim, reason: String) throws { try acknowledge(claim) }

  package func renew(_ claim: Claim) throws -> Bool {
    try held.renew(claim.id)
    return holds(claim.id)
  }

  package func holds(_ id: String) -> Bool { held[id] != nil }

  /// SQS keeps messages on several servers.
  package var lostState: Bool { false }

  package func leave() {
    renewals?.stop()
    renewal.takeAttemptsBack()
    for claim in (try? takeOver()) ?? [] { try? handBack(claim) }
    let unread = state.withLock { state in
      defer { state.unread = [] }
      return state.unread
    }
    for delivery in unread { try? handBack(Claim(id: delivery.id, name: delivery.name, attempt: 1, failures: 0)) }
  }

  // MARK: messages

  package var recognisesNames: Bool { false }

  package func add(_ names: [String], traceParent: TraceParent?) throws -> Int {
    for name in names { try QueuedName.check(name) }
    try queue.send(names, traceParent: traceParent)
    forgetCounts()
    return names.count
  }

  /// Writes the attempts and failures of a claim.
  ///
  /// - Returns: whether this worker holds it.
  private func note(_ claim: Claim) throws -> Bool {
    guard let message = held[claim.id]?.message else { return false }
    try notes.write(AttemptNotes(attempts: claim.attempt, failures: claim.failures), message.id)
    held.change(claim.id) { $0.hasNotes = true }
    return holds(claim.id)
  }

  private func forgetCounts() { state.withLock { $0.receives.forgetCounts() } }
}
